#!/bin/sh
# Compares our matrix product with OpenBLAS, side by side in one run.
# Usage: bench/gemm.sh [ROUNDS]. Needs Go and Python 3 with venv; installs numpy and
# threadpoolctl into a temporary folder, or takes them from the Python that
# PYTHON names. ENVACE_CPU chooses our instruction set, and with avx2 the peers' too.
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if [ -z "${PYTHON:-}" ]; then
	python3 -m venv "$tmp/venv"
	"$tmp/venv/bin/pip" install -q numpy threadpoolctl
	PYTHON="$tmp/venv/bin/python"
fi
CGO_ENABLED=0 go build -o "$tmp/gemm" bench/gemm.go
# OpenBLAS shall choose its kernels by the processor, or have those of our set.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
if [ "${ENVACE_CPU:-}" = avx2 ]; then
	export OPENBLAS_CORETYPE=Haswell MKL_ENABLE_INSTRUCTIONS=AVX2
fi
"$PYTHON" bench/gemm.py "$tmp/gemm" "${1:-15}"
