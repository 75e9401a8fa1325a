"""Runs two sides in turn and says what came of it: ours (engine.go) and a peer.

A ratio is printed only after both sides were found to compute the same.
"""

import json
import math
import os
import platform
import statistics
import subprocess
import time


# On a machine that others use as well, ENVACE_BENCH_CLOCK=cpu counts the processor's seconds of each
# side instead of the wall's. It says nothing about threads: give --threads 1.
CLOCK = os.environ.get("ENVACE_BENCH_CLOCK", "wall")
now = time.process_time if CLOCK == "cpu" else time.perf_counter


class Ours:
    """Our engine, as a process that answers requests; see engine.go."""

    def __init__(self, program=None):
        program = program or os.environ["ENVACE_BENCH_ENGINE"]
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, do, **what):
        print(json.dumps({"do": do, **what}), file=self.process.stdin)
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"our engine: {answer['error']}")
        return answer

    def time(self, do, **what):
        """Asks for work and returns its answer and its time."""
        answer = self.ask(do, **what)
        return answer, answer["cpu" if CLOCK == "cpu" else "seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def rows(path):
    """The rows of a file that rows.go wrote."""
    with open(path) as f:
        return [json.loads(line) for line in f]


def timed(work):
    """A function that does the work and returns its seconds."""

    def run(*args):
        start = now()
        work(*args)
        return now() - start

    return run


def rest():
    """Threads of BLAS and OpenMP go on spinning for some 30 ms after their work: who
    came next would have a part of the processor only."""
    time.sleep(0.1)


def alternate(ours, peer, rounds, seconds=float("inf")):
    """Pairs of seconds, each side first in every other round; it stops early, but
    not before three rounds, once so many seconds are over."""
    pairs, end = [], time.perf_counter() + seconds
    for i in range(rounds):
        if i >= 3 and time.perf_counter() > end:
            break
        pair = {}
        for side in (peer, ours) if i % 2 else (ours, peer):
            rest()
            pair[side] = side(i)
        pairs.append((pair[ours], pair[peer]))
    return pairs


def agree(what, ours, peer, relative=0.0, absolute=0.0):
    """Ends the program where two lists of numbers differ by more than is allowed."""
    if len(ours) != len(peer):
        raise SystemExit(f"no ratio: {what}: {len(ours)} numbers on our side, {len(peer)} on the other")
    worst = 0.0
    for a, b in zip(ours, peer):
        if not math.isfinite(a) or not math.isfinite(b) or abs(a - b) > absolute + relative * abs(b):
            raise SystemExit(f"no ratio: {what}: {a} on our side, {b} on the other")
        worst = max(worst, abs(a - b))
    print(f"  agree: {what}: {len(ours)} numbers, largest difference {worst:.2g}", flush=True)


def machine():
    """One line about where this runs."""
    name = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as f:
            name = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), name)
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    return f"{os.cpu_count()} cores of {name}, load averages {load}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC"


HEAD = f"({CLOCK} seconds)\n\n| work | peer | ours, s | peer, s | speed-up | quartiles | rounds |\n| --- | --- | --- | --- | --- | --- | --- |"


def report(work, peer, pairs, unit=None):
    """Prints a row of HEAD's table, and keeps it with its pairs in
    $ENVACE_BENCH_RESULTS. unit is (name, how many of them both sides worked on)."""
    ratios = [b / a for a, b in pairs]
    middle = statistics.median(ratios)
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (middle,) * 3
    a, b = (statistics.median(p[i] for p in pairs) for i in (0, 1))
    print(f"| {work} | {peer} | {a:.3g} | {b:.3g} | {middle:.2f} | {low:.2f}–{high:.2f} | {len(pairs)} |", flush=True)
    if unit:
        print(f"  {unit[0]} a second: {unit[1] / a:.0f} ours, {unit[1] / b:.0f} peer", flush=True)
    if path := os.environ.get("ENVACE_BENCH_RESULTS"):
        with open(path, "a") as f:
            print(json.dumps({"work": work, "peer": peer, "pairs": pairs, "clock": CLOCK, "unit": unit, "machine": machine()}), file=f)
