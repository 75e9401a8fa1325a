"""What all uses of llama.cpp here have in common: files in plain formats, and a
model of which every kernel runs.

Usage: llamafile.py GGUF FOLDER F32|F16|Q8_0 converts a file by llama.cpp's own tool
and prints where the new one lies. F32 holds the same numbers as GGUF does.
"""

import ctypes
import os
import subprocess
import sys

import llama_cpp.llama_cpp as l

FORMATS = {"F32": 0, "F16": 1, "Q8_0": 7}  # llama_ftype


@l.llama_log_callback
def silent(level, text, data):
    pass


def convert(gguf, folder, kind):
    """The path of gguf in another format. What is there already is kept."""
    path = os.path.join(folder, f"{os.path.basename(gguf).removesuffix('.gguf')}.{kind}.gguf")
    if os.path.exists(path):
        return path
    l.llama_log_set(silent, None)
    l.llama_backend_init()
    how = l.llama_model_quantize_default_params()
    how.ftype, how.allow_requantize, how.nthread = FORMATS[kind], True, os.cpu_count()
    part = path + ".part"
    if l.llama_model_quantize(gguf.encode(), part.encode(), ctypes.byref(how)) != 0:
        raise SystemExit(f"llama.cpp: convert {gguf} to {kind}")
    os.rename(part, path)
    return path


TRY = "import llama_cpp, sys; llama_cpp.Llama(sys.argv[1], n_ctx=64, verbose=False).eval(list(range(100, 132)))"


def avoid_broken_kernels(gguf):
    """Turns off kernels for special layouts of weights where these crash: GCC 12 drops a store that those
    for AMX need. Says whether it did. Only rounded weights have such layouts."""
    if subprocess.run([sys.executable, "-c", TRY, gguf], stderr=subprocess.DEVNULL).returncode == 0:
        return False
    defaults = l.llama_model_default_params

    def without():
        p = defaults()
        p.use_extra_bufts = False
        return p

    l.llama_model_default_params = without
    return True


if __name__ == "__main__":
    print(convert(*sys.argv[1:4]))
