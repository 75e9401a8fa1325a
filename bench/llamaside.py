"""llama.cpp as the other side of sampling, through llama-cpp-python's bindings:
the prompt is decoded once, its keys are shared, and each step decodes one token
of every stream."""

import ctypes
import math
import os
import tempfile

import llama_cpp as l

FORMATS = {"F32": 0, "F16": 1, "Q8_0": 7}  # llama_ftype


class Llama:
    """A GGUF file, its weights converted to a format first. Keys and values are F32."""

    def __init__(self, gguf, kind, prompt, tokens, streams, threads):
        self.tokens, self.name = tokens, f"llama.cpp ({l.__version__} of its bindings), {kind}"
        # Rounding the weights changes the log-probabilities, and F32 is what we compute with.
        self.tolerance = {"F32": 5e-3, "F16": 5e-2, "Q8_0": 0.5}[kind]
        l.llama_log_set(silent, None)
        l.llama_backend_init()
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, kind + ".gguf")
            how = l.llama_model_quantize_default_params()
            how.ftype, how.allow_requantize, how.nthread = FORMATS[kind], True, threads
            if l.llama_model_quantize(gguf.encode(), path.encode(), ctypes.byref(how)) != 0:
                raise SystemExit(f"llama.cpp: convert {gguf} to {kind}")
            p = l.llama_model_default_params()
            p.use_mmap = False
            self.model = l.llama_model_load_from_file(path.encode(), p)
        c = l.llama_context_default_params()
        c.n_ctx, c.n_batch, c.n_ubatch = prompt + streams * (tokens + 1) + 64, 2048, 512
        c.n_seq_max, c.kv_unified = streams, True
        c.n_threads = c.n_threads_batch = threads
        c.type_k = c.type_v = 0  # F32
        self.context = l.llama_init_from_model(self.model, c)
        self.memory = l.llama_get_memory(self.context)
        self.batch = l.llama_batch_init(2048, 0, 1)
        self.vocabulary = l.llama_vocab_n_tokens(l.llama_model_get_vocab(self.model))

    def decode(self, entries):
        """entries are (token, position, stream, whether its logits are wanted)."""
        b = self.batch
        for i, (token, at, stream, wanted) in enumerate(entries):
            b.token[i], b.pos[i], b.n_seq_id[i], b.logits[i] = token, at, 1, wanted
            b.seq_id[i][0] = stream
        b.n_tokens = len(entries)
        if l.llama_decode(self.context, b) != 0:
            raise SystemExit("llama.cpp: decode")

    def begin(self, prompt):
        l.llama_memory_clear(self.memory, True)
        self.decode([(t, i, 0, i == len(prompt) - 1) for i, t in enumerate(prompt)])

    def sample(self, prompt, streams):
        """The tokens that each stream drew, at temperature 1."""
        self.begin(prompt)
        for s in range(1, streams):
            l.llama_memory_seq_cp(self.memory, 0, s, -1, -1)
        draws = [l.llama_sampler_init_dist(s) for s in range(streams)]
        out = [[l.llama_sampler_sample(d, self.context, len(prompt) - 1)] for d in draws]
        for i in range(self.tokens - 1):
            self.decode([(o[-1], len(prompt) + i, s, True) for s, o in enumerate(out)])
            for s, o in enumerate(out):
                o.append(l.llama_sampler_sample(draws[s], self.context, s))
        for d in draws:
            l.llama_sampler_free(d)
        return out

    def logprobs(self, prompt, continuation):
        """Log-probabilities of a continuation's tokens."""
        self.begin(prompt)
        out, at = [], len(prompt) - 1
        for i, token in enumerate(continuation):
            z = l.llama_get_logits_ith(self.context, at)[: self.vocabulary]
            top = max(z)
            out.append(z[token] - top - math.log(math.fsum(math.exp(x - top) for x in z)))
            self.decode([(token, len(prompt) + i, 0, True)])
            at = 0
        return out

    def __del__(self):
        l.llama_batch_free(self.batch)
        l.llama_free(self.context)
        l.llama_model_free(self.model)


@l.llama_log_callback
def silent(level, text, data):
    pass
