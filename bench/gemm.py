"""Time our matrix product and OpenBLAS's (through numpy), and MKL's where PyTorch is
there, in turn, a few products each.

Usage: gemm.py PROGRAM [ROUNDS], where PROGRAM is built from gemm.go.
Prints GFLOP/s (the best of each), and the median and quartiles of the ratios of
neighbours (ours / the peer's speed; above 1 is ours).
"""

import statistics
import subprocess
import sys
import time

import numpy
import sides
import threadpoolctl

try:
    import torch
except ImportError:
    torch = None

# (m, n, k): square ones, and the layers of SmolLM2-135M when 1, 8 or 32 streams are sampled.
SQUARE = [(n, n, n) for n in (512, 1024, 2048, 4096)]
SKINNY = [(m, n, k) for m in (1, 8, 32) for n, k in ((960, 576), (3072, 576), (576, 1536), (49152, 576))]


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    ours = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def run_ours(shape, threads, times):
        print(*shape, threads, times, file=ours.stdin)
        return float(ours.stdout.readline())

    blas = next(x for x in threadpoolctl.threadpool_info() if x["internal_api"] == "openblas")
    print(f"OpenBLAS {blas['version']}, kernels for {blas['architecture']}; {rounds} rounds" + (f"; MKL of PyTorch {torch.__version__}" if torch else ""))
    print(f"{'m n k':>16} threads   ours  openblas  median quartiles        mkl  median quartiles")
    for threads in (1, 2):
        if torch:
            torch.set_num_threads(threads)
        with threadpoolctl.threadpool_limits(threads, user_api="blas"):
            for shape in SQUARE + SKINNY:
                measure(shape, threads, rounds, run_ours)
    ours.stdin.close()
    ours.wait()


def measure(shape, threads, rounds, run_ours):
    m, n, k = shape
    a, b = numpy.random.rand(m, k).astype("f"), numpy.random.rand(k, n).astype("f")
    c = numpy.empty((m, n), "f")
    peers = [lambda: numpy.matmul(a, b, out=c)]
    if torch:
        # a linear layer, as models hold their weights: (n, k)
        x, w = torch.from_numpy(a), torch.from_numpy(numpy.ascontiguousarray(b.T))
        peers.append(lambda: torch.nn.functional.linear(x, w))
    times = max(2, int(5e8 / (m * n * k)))
    if m * n * k > 3e10:
        times, rounds = 1, min(rounds, 5)
    run_ours(shape, threads, 1)
    for p in peers:
        p()
    turns = []
    for _ in range(rounds):
        turn = []
        for side in [lambda: run_ours(shape, threads, times)] + [lambda p=p: best(p, times) for p in peers]:
            sides.rest()
            turn.append(side())
        turns.append(turn)
    speed = 2 * m * n * k / 1e9
    print(f"{m:5} {n:5} {k:4} {threads:7} {speed / min(t[0] for t in turns):6.1f}", end="")
    for i in range(len(peers)):
        low, middle, high = statistics.quantiles([t[i + 1] / t[0] for t in turns], n=4)
        print(f" {speed / min(t[i + 1] for t in turns):9.1f} {middle:7.2f} {low:.2f}-{high:.2f}  ", end="")
    print(flush=True)


def best(product, times):
    found = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        product()
        found = min(found, time.perf_counter() - start)
    return found


if __name__ == "__main__":
    main()
