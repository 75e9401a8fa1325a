"""llama.cpp as the other side of sampling, through llama-cpp-python's bindings:
the prompt is decoded once, its keys are shared, and each step decodes one token
of every stream in one batch."""

import llama_cpp.llama_cpp as l
import llamafile
import numpy

# Rounded weights change log-probabilities, and F32 is what we compute with.
TOLERANCE = {"F32": 0.02, "F16": 0.05, "Q8_0": 0.5}


class Llama:
    """The weights of a GGUF file in one of llamafile's formats. Keys and values are F16, llama.cpp's default."""

    def __init__(self, gguf, folder, kind, prompt, tokens, streams, threads):
        self.tokens, self.tolerance = tokens, TOLERANCE[kind]
        path = llamafile.convert(gguf, folder, kind)
        self.name = f"llama.cpp {kind}" + (" without AMX" if llamafile.avoid_broken_kernels(path) else "")
        l.llama_log_set(llamafile.silent, None)
        l.llama_backend_init()
        self.model = l.llama_model_load_from_file(path.encode(), l.llama_model_default_params())
        c = l.llama_context_default_params()
        c.n_ctx, c.n_batch, c.n_ubatch = prompt + streams * (tokens + 1) + 64, 2048, 512
        c.n_seq_max, c.kv_unified = streams, True
        c.n_threads = c.n_threads_batch = threads
        self.context = l.llama_init_from_model(self.model, c)
        if not self.model or not self.context:
            raise SystemExit(f"llama.cpp: open {gguf} as {kind}")
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
            z = numpy.ctypeslib.as_array(l.llama_get_logits_ith(self.context, at), (self.vocabulary,)).astype(float)
            out.append(float(z[token] - z.max() - numpy.log(numpy.exp(z - z.max()).sum())))
            self.decode([(token, len(prompt) + i, 0, True)])
            at = 0
        return out

    def close(self):
        l.llama_batch_free(self.batch)
        l.llama_free(self.context)
        l.llama_model_free(self.model)
