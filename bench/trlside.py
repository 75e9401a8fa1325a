"""TRL's own GRPO loss as the other side of training: GRPOTrainer computes it of
recorded rows, micro-batch by micro-batch. Nothing is generated."""

import os
import tempfile

import torch
import torchside
from datasets import Dataset
from transformers import PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer


def no_reward(completions, **_):
    return [0.0] * len(completions)


class Trainer:
    """As torchside.Trainer, with the loss of TRL. Its normaliser "dapo" weighs all
    tokens of a step alike, as the rows do."""

    def __init__(self, model, adam, clip, path, rows, size):
        steps = -(-rows // size)
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(path, "tokenizer.json"))
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(0)
        config = GRPOConfig(
            output_dir=tempfile.gettempdir(), use_cpu=True, bf16=False, report_to=[], beta=0.0, loss_type="dapo",
            epsilon=clip, epsilon_high=clip, num_generations=2, per_device_train_batch_size=2 * -(-size // 2),
            gradient_accumulation_steps=steps, activation_checkpointing=False, temperature=1.0,
        )
        self.size = size
        self.trainer = GRPOTrainer(model=model, args=config, reward_funcs=no_reward, processing_class=tokenizer,
                                   train_dataset=Dataset.from_dict({"prompt": ["-"] * 2 * size}))
        self.model = self.trainer.model.train()
        self.trainer.current_gradient_accumulation_steps = config.steps_per_generation
        self.torch = torchside.Trainer(self.model, adam, clip)

    def batches(self, rows):
        """What the trainer's generation would have handed over."""
        tokens = torch.tensor(float(sum(len(r.completion) for r in rows)))
        out = []
        for b in torchside.batches(rows, self.size):
            keep, ids = b["keep"], b["ids"]
            mask = torch.ones_like(ids) if b["mask"] is None else b["mask"]
            out.append({
                "prompt_ids": ids[:, :-keep], "prompt_mask": mask[:, :-keep],
                "completion_ids": ids[:, -keep:], "completion_mask": mask[:, -keep:],
                "advantages": b["advantage"], "old_per_token_logps": b["old"], "num_items_in_batch": tokens,
            })
        return out

    def step(self, list_):
        """Returns the loss and the gradient's norm before clipping."""
        total = 0.0
        for inputs in list_:
            loss = self.trainer._compute_loss(self.model, inputs)
            loss.backward()
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(self.torch.params, self.torch.max_norm)
        self.torch.optimiser.step()
        self.torch.optimiser.zero_grad()
        return total, norm.item()
