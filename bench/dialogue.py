"""The turns of one long dialogue, ours in full against PyTorch row by row.

Usage: dialogue.py MODEL ROWS. The peer would take many minutes: three rows, the
shortest, the middle one and the longest, are timed, and the others extrapolated from
them by a polynomial of the row's length, a·n + b·n².
"""

import os
import resource
import sys
import tempfile
import time

import numpy
import sides
import torch
import torchside
from train import ADAM

RANK = 16


def main():
    path, file = sys.argv[1:3]
    print(f"dialogue: {sides.machine()}")
    ours, data = sides.Ours(), sides.rows(file)
    rows = sorted((torchside.Row(d) for d in data), key=length)
    with tempfile.TemporaryDirectory() as tmp:
        ours.ask("open", path=path, rank=RANK, alpha=2.0 * RANK, threads=os.cpu_count())
        adapter = os.path.join(tmp, "adapter")
        ours.ask("export", path=adapter)
        model = torchside.load(path, adapter)
    ours.ask("rows", path=file)
    trainer = torchside.Trainer(model, ADAM)
    measured = [rows[0], rows[len(rows) // 2], rows[-1]]
    peer, total = [], 0.0
    for r in measured:
        start = time.perf_counter()
        trainer.gather([torchside.pad([r])])
        peer.append(time.perf_counter() - start)
        print(f"  peer: row of {length(r)} tokens, {peer[-1]:.1f} s", flush=True)
    trainer.optimiser.zero_grad()
    lengths = numpy.array([length(r) for r in measured], float)
    fit, *_ = numpy.linalg.lstsq(numpy.stack([lengths, lengths**2], 1), numpy.array(peer), rcond=None)
    total = sum(fit[0] * length(r) + fit[1] * length(r) ** 2 for r in rows)
    shown = ours.ask("step", loss={"Objective": "cross_entropy"}, adam=ADAM, show=True)
    check(model, data, shown)
    pairs = [(shown["seconds"], total)]
    print(f"  tokens of the rows {shown['rows']}, computed by us {shown['computed']}")
    with open(f"/proc/{ours.process.pid}/status") as f:
        print("  ours:", next(line.strip() for line in f if line.startswith("VmHWM")))
    print(f"  peer: ru_maxrss {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} kB")
    print(sides.HEAD)
    sides.report(f"SmolLM2-135M, LoRA, {len(rows)} turns of a dialogue of {length(rows[-1])} tokens",
                 f"PyTorch {torch.__version__.split('+')[0]} + peft, row by row, extrapolated from three rows", pairs)
    ours.close()


def length(row):
    return len(row.prompt) + len(row.completion)


def check(model, data, shown):
    """The shortest row's log-probabilities are those of the peer."""
    i = min(range(len(data)), key=lambda i: len(data[i]["Input"]))
    row = torchside.Row(data[i])
    with torch.no_grad():
        peer = torchside.logprobs(model, torchside.pad([row]))[0].tolist()
    mine = [x for x, w in zip(shown["logprobs"][i], data[i]["Weight"]) if w]
    sides.agree("log-probabilities", mine, [x for x, w in zip(peer, row.weight) if w], absolute=2e-3)


if __name__ == "__main__":
    main()
