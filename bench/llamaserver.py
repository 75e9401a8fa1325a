"""llama.cpp's server, of llama-cpp-python, with kernels that run.

Usage: llamaserver.py GGUF OPTION…, where GGUF is a file to try them on, and the
options are those of python -m llama_cpp.server.
"""

import sys

import llama_cpp.server.__main__ as server
import llamafile

if llamafile.avoid_broken_kernels(sys.argv.pop(1)):
    print("llama.cpp's kernels for AMX crash here: they are turned off", flush=True)
server.main()
