"""Training, ours against PyTorch's: forward, backward and AdamW of the same rows.

Usage: train.py WORK MODEL ROWS [options]. MODEL is a Hugging Face folder that
both sides open, ROWS a file that rows.go wrote. See bench.sh for the works.
"""

import argparse
import os
import tempfile

import sides
import torch
import torchside

ADAM = {"LR": 1e-5, "Beta1": 0.9, "Beta2": 0.98, "Eps": 1e-8, "WeightDecay": 0.0, "ClipNorm": 1.0}


def options():
    p = argparse.ArgumentParser()
    p.add_argument("work")
    p.add_argument("model")
    p.add_argument("rows")
    p.add_argument("--rank", type=int, default=0, help="of an adapter; 0 trains all weights")
    p.add_argument("--clip", type=float, help="train by the clipped policy gradient")
    p.add_argument("--sizes", default="1", help="micro-batches of the peer to choose from")
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--seconds", type=float, default=120)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--tolerance", type=float, default=2e-4, help="of log-probabilities")
    p.add_argument("--compile", action="store_true", help="the peer runs through torch.compile")
    p.add_argument("--trl", action="store_true", help="the peer is the loss of TRL's GRPOTrainer")
    return p.parse_args()


def flat(lists, weights):
    return [x for xs, ws in zip(lists, weights) for x, w in zip(xs, ws) if w]


def check(ours, model, data, rows, loss, tolerance):
    """Our first step; the log-probabilities it found must be the peer's."""
    with torch.no_grad():
        peer = [torchside.logprobs(model, torchside.pad([r]))[0].tolist() for r in rows]
    shown = ours.ask("step", loss=loss, adam=ADAM, show=True)
    weights = [d["Weight"] for d in data]
    sides.agree("log-probabilities", flat(shown["logprobs"], weights), flat(peer, [r.weight for r in rows]), absolute=tolerance)
    print(f"  tokens of the rows {shown['rows']}, computed by us {shown['computed']}")
    return shown


def peer_of(o, model, rows):
    """The peer's name, its trainer and its micro-batches."""
    sizes = [int(s) for s in o.sizes.split(",")]
    name = "PyTorch " + torch.__version__.split("+")[0] + (" + peft" if o.rank else "")
    trainer = torchside.Trainer(model, ADAM, o.clip)
    if o.compile:
        model.compile(dynamic=False)
        name += ", compiled"
    if o.trl:
        import trl
        import trlside

        size = sizes[0]
        name = f"TRL {trl.__version__}, GRPOTrainer"
        trainer = trlside.Trainer(model, ADAM, o.clip, o.model, len(rows), size)
        return f"{name}, micro-batches of {size}", trainer, trainer.batches(rows)
    size, list_ = trainer.best_size(rows, sizes)
    if size > 1 or len(sizes) > 1:
        name += f", micro-batches of {size}"
    return name, trainer, list_


def main():
    o = options()
    torch.set_num_threads(o.threads)
    print(f"{o.work}: {sides.machine()}; {o.threads} threads")
    ours, data = sides.Ours(), sides.rows(o.rows)
    rows = [torchside.Row(d) for d in data]
    loss = {"Objective": "cross_entropy"} if o.clip is None else {"Objective": "ppo", "ClipLow": o.clip, "ClipHigh": o.clip}
    with tempfile.TemporaryDirectory() as tmp:
        opened = ours.ask("open", path=o.model, rank=o.rank, alpha=2.0 * o.rank, threads=o.threads)
        adapter = None
        if o.rank:
            adapter = os.path.join(tmp, "adapter")
            ours.ask("export", path=adapter)
        model = torchside.load(o.model, adapter)
    ours.ask("rows", path=o.rows)
    print(f"  {opened['params']} parameters, {opened['trained']} trained; our kernels: {opened['isa']}")
    name, trainer, list_ = peer_of(o, model, rows)
    shown = check(ours, model, data, rows, loss, o.tolerance)
    found = {"ours": [(shown["loss"], shown["norm"])], "peer": [trainer.step(list_)]}  # the first steps warm up

    def our_step(_):
        a, took = ours.time("step", loss=loss, adam=ADAM)
        found["ours"].append((a["loss"], a["norm"]))
        return took

    peer_step = sides.timed(lambda _: found["peer"].append(trainer.step(list_)))
    pairs = sides.alternate(our_step, peer_step, o.rounds, o.seconds)
    for i, what in enumerate(("losses of all steps", "norms of all gradients")):
        a, b = ([x[i] for x in found[side]] for side in ("ours", "peer"))
        sides.agree(what, a, b, relative=2e-3, absolute=2e-5)
    print(sides.HEAD)
    sides.report(o.work, name, pairs, ("tokens of the rows", shown["rows"]))
    ours.close()


if __name__ == "__main__":
    main()
