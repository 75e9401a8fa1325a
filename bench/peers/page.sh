#!/bin/sh
# Drives the chat page of envace serve, and a run's report.html, in headless
# Chromium, and fails at anything odd.
# Usage: bench/peers/page.sh RUN [MODEL]. RUN is a folder that envace report has
# written to. Needs Go, npm and Debian's chromium, which it installs where it may;
# keeps playwright-core in $ENVACE_CACHE (default ~/.cache/envace-ci), and pictures
# of the pages in pictures/ beside it.
set -eu
run=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
cache=${ENVACE_CACHE:-$HOME/.cache/envace-ci}/page
mkdir -p "$cache/pictures"
if ! command -v chromium >/dev/null; then
	{ apt-get update -qq && apt-get install -qq -y chromium; } >"$cache/apt.log" 2>&1 || {
		echo "page.sh: there is no chromium, and apt-get could not install it: $(tail -n 1 "$cache/apt.log")" >&2
		exit 1
	}
fi
[ -d "$cache/node_modules/playwright-core" ] || npm install --silent --prefix "$cache" playwright-core@1.64.1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
CGO_ENABLED=0 go build -o "$tmp/envace" ./cmd/envace
PLAYWRIGHT=$cache CHROMIUM=$(command -v chromium) node bench/peers/page.mjs "$tmp/envace" "${2:-recipes/base}" "$run/report.html" "$cache/pictures"
