#!/bin/sh
# Drives envace serve by OpenAI's own SDKs, and fails at any mismatch.
# Usage: bench/peers/openai_sdk.sh [MODEL]. Needs Go, Python 3 with venv, and npm;
# keeps the SDKs in $ENVACE_CACHE (default ~/.cache/envace-ci).
set -eu
cd "$(dirname "$0")/../.."
cache=${ENVACE_CACHE:-$HOME/.cache/envace-ci}/openai-sdk
mkdir -p "$cache"
if [ ! -x "$cache/venv/bin/python" ]; then
	python3 -m venv "$cache/venv"
fi
"$cache/venv/bin/python" -c 'import openai' 2>/dev/null || "$cache/venv/bin/pip" install -q openai==2.8.1
[ -d "$cache/node_modules/openai" ] || npm install --silent --prefix "$cache" openai@6.49.0
tmp=$(mktemp -d)
CGO_ENABLED=0 go build -o "$tmp/envace" ./cmd/envace
"$tmp/envace" serve "${1:-recipes/base}" --name peer --listen 127.0.0.1:0 >"$tmp/log" &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$tmp"' EXIT
while ! grep -q '^serving at ' "$tmp/log"; do
	kill -0 $server
	sleep 0.1
done
url=$(sed -n 's/^serving at //p' "$tmp/log")/v1
"$cache/venv/bin/python" bench/peers/openai_sdk.py "$url" peer
OPENAI_SDK=$cache node bench/peers/openai_sdk.mjs "$url" peer
