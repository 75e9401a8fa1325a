"""How the cost of training grows, as one small SVG each: tokens of a row, episodes
of a group, turns of an episode, threads, size of the model.

Usage: growth.py FOLDER [CHART…], charts being tokens, group, turns, threads and
model; without one, all. Every point is the median of three steps: forward, backward
and the optimiser; broken lines are the same rows without shared prefixes.
"""

import json
import os
import random
import statistics
import sys
import tempfile

import sides

SMALL = {"Arch": "qwen3", "Vocab": 1351, "Width": 128, "Layers": 5, "Heads": 4, "KVHeads": 2, "HeadDim": 32, "MLP": 384,
         "Eps": 1e-6, "RopeTheta": 1e4, "Tied": True, "Context": 16384, "BOS": -1, "PAD": -1}
SIZES = [  # layers, width, heads, keys, head size, inner size, vocabulary
    (5, 128, 4, 2, 32, 384, 1351), (8, 256, 8, 4, 32, 768, 4096), (12, 384, 6, 2, 64, 1024, 16384), (30, 576, 9, 3, 64, 1536, 49152),
]
draw = random.Random(1)


def words(n):
    return [draw.randrange(1351) for _ in range(n)]


def datum(ids, weighed):
    """A row whose last tokens count."""
    n = len(ids) - 1
    return {"Input": ids[:n], "Target": ids[1:], "Weight": [0.0] * (n - weighed) + [1.0 / weighed] * weighed}


class Bench:
    def __init__(self):
        self.ours = sides.Ours()
        self.open(SMALL)

    def open(self, config, threads=1 if sides.CLOCK == "cpu" else os.cpu_count()):
        return self.ours.ask("open", config=config, threads=threads)

    def cost(self, rows, apart=False):
        """Seconds of a step over the rows."""
        with tempfile.NamedTemporaryFile("w") as f:
            f.writelines(json.dumps(d) + "\n" for d in rows)
            f.flush()
            self.ours.ask("rows", path=f.name)
        times = [self.ours.time("step", loss={"Objective": "cross_entropy"}, adam={"Eps": 1e-8}, apart=apart)[1] for _ in range(4)]
        return statistics.median(times[1:])

    def both(self, xs, rows_of):
        """Points of shared and of separate rows."""
        shared, apart = [], []
        for x in xs:
            rows = rows_of(x)
            shared.append((x, self.cost(rows)))
            apart.append((x, self.cost(rows, apart=True)))
            print(f"  {x}: {shared[-1][1]:.3f} s, separate rows {apart[-1][1]:.3f} s", flush=True)
        return shared, apart

    def sizes(self):
        points, row = [], words(257)
        for layers, width, heads, keys, size, inner, vocab in SIZES:
            c = dict(SMALL, Layers=layers, Width=width, Heads=heads, KVHeads=keys, HeadDim=size, MLP=inner, Vocab=vocab, Context=1024)
            params = self.open(c)["params"]
            points.append((params / 1e6, self.cost([datum(row, 256)])))
            print(f"  {params}: {points[-1][1]:.3f} s", flush=True)
        return points


def turns(n):
    """The rows of an episode of n turns: each reads all before it."""
    ids, rows = words(100), []
    for _ in range(n):
        ids = ids + words(80)
        rows.append(datum(ids, 30))
    return rows


def group(k):
    """One row each of k episodes with a common prompt."""
    prompt = words(400)
    return [datum(prompt + words(60), 60) for _ in range(k)]


def svg(title, across, lines):
    """A chart of lines (name, dashed, points), both axes from 0."""
    w, h, left, right, top, low = 420, 260, 52, 120, 34, 40
    most_x, most_y = (max(p[i] for _, _, ps in lines for p in ps) for i in (0, 1))

    def at(p):
        return left + p[0] / most_x * (w - left - right), h - low - p[1] / most_y * (h - low - top)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" font-family="sans-serif" font-size="11" fill="#777">',
           f'<title>{title}</title><text x="{left}" y="18" font-size="13">{title}</text>',
           f'<path d="M{left} {top}V{h - low}H{w - right}" fill="none" stroke="#777"/>',
           f'<text x="{left}" y="{h - 8}">{across}</text><text x="4" y="{top + 4}">{most_y:.2g} s</text><text x="30" y="{h - low}">0</text>']
    for name, dashed, points in lines:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(at, points))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        out.append(f'<path d="M{path}" fill="none" stroke="#3b7dd8" stroke-width="2"{dash}/>')
        free = 0.0  # from here on there is room for a label
        for p in points:
            x, y = at(p)
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#3b7dd8"><title>{p[0]:g}: {p[1]:.3g} s</title></circle>')
            if not dashed and x >= free:
                out.append(f'<text x="{x:.1f}" y="{h - low + 14}" text-anchor="middle">{round(p[0], 1):g}</text>')
                free = x + 26
        x, y = at(points[-1])
        out.append(f'<text x="{x + 8:.1f}" y="{y + 4:.1f}">{name}</text>')
    return "\n".join(out + ["</svg>", ""])


def threads_of(bench):
    """Points by number of threads."""
    rows, points = [datum(words(401), 400) for _ in range(10)], []
    for t in range(1, os.cpu_count() + 1):
        bench.open(SMALL, t)
        points.append((t, bench.cost(rows)))
        print(f"  {t}: {points[-1][1]:.3f} s", flush=True)
    return points


def tokens_of(bench):
    """Points by length of a single row."""
    points = []
    for n in (1000, 2000, 4000, 6000, 8000):
        points.append((n, bench.cost([datum(words(n + 1), n)])))
        print(f"  {n}: {points[-1][1]:.3f} s", flush=True)
    return points


def two(names, both):
    """A full line and a broken one."""
    return [(names[0], False, both[0]), (names[1], True, both[1])]


CHARTS = {  # title, what goes across, lines
    "tokens": ("One row, one step", "tokens of the row", lambda b: [("", False, tokens_of(b))]),
    "group": ("A group's rows of 460 tokens, 400 shared", "episodes of the group", lambda b: two(("shared", "separate"), b.both((1, 2, 4, 8, 16), group))),
    "turns": ("The rows of an episode, 80 tokens a turn", "turns of the episode", lambda b: two(("one tree", "row by row"), b.both((1, 5, 10, 15, 20), turns))),
    "threads": ("Ten rows of 400 tokens", "threads", lambda b: [("", False, threads_of(b))]),
    "model": ("A row of 256 tokens", "million parameters", lambda b: [("", False, b.sizes())]),
}


def main():
    folder, names = sys.argv[1], sys.argv[2:] or CHARTS
    os.makedirs(folder, exist_ok=True)
    print(f"growth: {sides.machine()}; {sides.CLOCK} seconds")
    for name in names:
        title, across, lines = CHARTS[name]
        print(name)
        bench = Bench()
        chart = svg(f"{title} ({sides.CLOCK} seconds)", across, lines(bench))
        with open(os.path.join(folder, name + ".svg"), "w") as f:
            f.write(chart)
        bench.ours.close()


if __name__ == "__main__":
    main()
