"""The other side of training: PyTorch and transformers, as a trainer uses them."""

import time

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM


def load(path, adapter=None):
    """The model of a folder in float32, ready to train; with an adapter, only that."""
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="sdpa")
    if adapter:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, adapter, is_trainable=True)
    return model.train()


class Row:
    """A row of rows.go: what comes before the first weighed token is prompt."""

    def __init__(self, d):
        first = next(i for i, w in enumerate(d["Weight"]) if w)
        tokens = d["Input"] + d["Target"][-1:]
        self.prompt, self.completion = tokens[: first + 1], tokens[first + 1 :]
        self.weight = d["Weight"][first:]
        self.old = (d["Logprobs"] or [0.0] * len(d["Input"]))[first:]
        self.advantage = (d["Advantage"] or [0.0] * len(d["Input"]))[first:]


def batches(rows, size):
    """Micro-batches of rows of about equal length, prompts padded on the left and
    completions on the right."""
    rows = sorted(rows, key=lambda r: len(r.prompt) + len(r.completion))
    return [pad(rows[i : i + size]) for i in range(0, len(rows), size)]


def pad(rows):
    before, after = max(len(r.prompt) for r in rows), max(len(r.completion) for r in rows)

    def right(lists):
        return torch.tensor([x + [0] * (after - len(x)) for x in lists])

    ids = torch.tensor([[0] * (before - len(r.prompt)) + r.prompt + r.completion + [0] * (after - len(r.completion)) for r in rows])
    mask = torch.tensor([[0] * (before - len(r.prompt)) + [1] * (len(r.prompt) + len(r.completion)) + [0] * (after - len(r.completion)) for r in rows])
    return {
        "ids": ids,
        "mask": None if mask.all() else mask,  # without one the causal kernel is taken
        "keep": after,
        "weight": right([r.weight for r in rows]),
        "old": right([r.old for r in rows]),
        "advantage": right([r.advantage for r in rows]),
    }


def logprobs(model, b):
    """Log-probabilities (rows, keep) of the completions; nothing else gets logits."""
    logits = model(input_ids=b["ids"], attention_mask=b["mask"], logits_to_keep=b["keep"] + 1, use_cache=False).logits[:, :-1]
    target = b["ids"][:, -b["keep"] :]
    return -F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view(target.shape)


def loss_of(lp, b, clip):
    """Weighed sum: cross entropy, or with clip the clipped policy gradient."""
    if clip is None:
        return -(b["weight"] * lp).sum()
    r, a = (lp - b["old"]).exp(), b["advantage"]
    return -(b["weight"] * torch.min(a * r, a * r.clamp(1 - clip, 1 + clip))).sum()


class Trainer:
    """Forward, backward and AdamW over micro-batches. adam has engine.go's names."""

    def __init__(self, model, adam, clip=None):
        self.model, self.clip, self.max_norm = model, clip, adam["ClipNorm"]
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(self.params, lr=adam["LR"], betas=(adam["Beta1"], adam["Beta2"]),
                                           eps=adam["Eps"], weight_decay=adam["WeightDecay"], fused=True)

    def gather(self, list_):
        """Adds up the gradient; returns the loss."""
        total = 0.0
        for b in list_:
            loss = loss_of(logprobs(self.model, b), b, self.clip)
            loss.backward()
            total += loss.item()
        return total

    def step(self, list_):
        """Returns the loss and the gradient's norm before clipping."""
        loss = self.gather(list_)
        norm = torch.nn.utils.clip_grad_norm_(self.params, self.max_norm)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return loss, norm.item()

    def best_size(self, rows, sizes):
        """The micro-batch that is fastest here, and its micro-batches."""
        found = {}
        for size in sizes:
            list_ = batches(rows, size)
            times = []
            for _ in range(2):
                start = time.perf_counter()
                self.gather(list_)
                times.append(time.perf_counter() - start)
            found[size] = min(times)
            self.optimiser.zero_grad()
        print("  peer's micro-batches, s:", ", ".join(f"{k} rows {v:.2f}" for k, v in found.items()), flush=True)
        size = min(found, key=found.get)
        return size, batches(rows, size)
