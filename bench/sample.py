"""Sampling, ours against a peer's: 32 streams with one prompt of 1k tokens, and
one stream.

Usage: sample.py MODEL --peer transformers|llama [--gguf FILE]. Every round has
a prompt of its own, so that nothing is left over in a cache. --tokens 1 times
the prompt alone.
"""

import argparse
import os
import random

import sides
import torch
from torch.nn.functional import log_softmax
from transformers import AutoModelForCausalLM, DynamicCache


def options():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--peer", choices=("transformers", "llama"), required=True)
    p.add_argument("--gguf", help="for llama: the file that MODEL was exported from")
    p.add_argument("--kinds", default="F32,F16,Q8_0", help="for llama: formats of its weights")
    p.add_argument("--streams", default="32,1")
    p.add_argument("--prompt", type=int, default=1000)
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=150)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    return p.parse_args()


class Transformers:
    """model.generate; with once, after computing the prompt a single time by hand."""

    def __init__(self, path, tokens, once):
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="sdpa").eval()
        self.tokens, self.once = tokens, once
        self.name = "transformers generate" + (", prompt computed once by hand" if once else "")
        self.tolerance = 2e-3

    @torch.no_grad()
    def sample(self, prompt, streams):
        """The tokens that each stream drew, at temperature 1."""
        ids, cache = torch.tensor([prompt]).expand(streams, -1), None
        if self.once and streams > 1:
            cache = DynamicCache(config=self.model.config)
            self.model(torch.tensor([prompt[:-1]]), past_key_values=cache, logits_to_keep=1)
            cache.batch_repeat_interleave(streams)
        out = self.model.generate(ids, attention_mask=torch.ones_like(ids), past_key_values=cache, do_sample=True, temperature=1.0,
                                  top_k=0, top_p=1.0, max_new_tokens=self.tokens, min_new_tokens=self.tokens, pad_token_id=0)
        return out[:, len(prompt) :].tolist()

    @torch.no_grad()
    def logprobs(self, prompt, continuation):
        """Log-probabilities of a continuation's tokens."""
        logits = self.model(torch.tensor([prompt + continuation]), logits_to_keep=len(continuation) + 1).logits[0, :-1]
        return log_softmax(logits, -1).gather(1, torch.tensor(continuation)[:, None])[:, 0].tolist()

    def close(self):
        self.model = None


def peers(o):
    if o.peer == "transformers":
        return [lambda: Transformers(o.model, o.tokens, False), lambda: Transformers(o.model, o.tokens, True)]
    import llamaside

    most = max(map(int, o.streams.split(",")))
    return [lambda kind=kind: llamaside.Llama(o.gguf, os.path.dirname(o.model), kind, o.prompt, o.tokens, most, o.threads)
            for kind in o.kinds.split(",")]


def main():
    o = options()
    torch.set_num_threads(o.threads)
    print(f"sampling: {sides.machine()}; {o.threads} threads")
    ours = sides.Ours()
    ours.ask("open", path=o.model, rank=1, alpha=1.0, threads=o.threads)  # an adapter: nothing else is trained
    draw = random.Random(1)
    for make in peers(o):
        peer = make()
        for streams in map(int, o.streams.split(",")):
            compare(o, ours, peer, streams, draw)
        peer.close()
    ours.close()


def compare(o, ours, peer, streams, draw):
    def words(n):
        return [draw.randrange(100, 40000) for _ in range(n)]

    prompts = [words(o.prompt) for _ in range(o.rounds)]

    def our_round(i):
        return ours.time("sample", prompts=[prompts[i]], count=streams, tokens=o.tokens, heat=1.0, seed=i)[1]

    first = words(o.prompt)
    drawn = ours.ask("sample", prompts=[first], count=1, tokens=16, heat=1.0)  # also to warm up
    peer.sample(words(8), 1)
    sides.agree("log-probabilities", drawn["logprobs"][0], peer.logprobs(first, drawn["tokens"][0]), absolute=peer.tolerance)
    pairs = sides.alternate(our_round, sides.timed(lambda i: peer.sample(prompts[i], streams)), o.rounds, o.seconds)
    print(sides.HEAD)
    sides.report(f"SmolLM2-135M, {streams} × {o.tokens} tokens after a prompt of {o.prompt}", peer.name, pairs, ("tokens", streams * o.tokens))


if __name__ == "__main__":
    main()
