"""Time our matrix product and OpenBLAS's (through numpy) in turn, a few products each.

Usage: gemm.py PROGRAM [ROUNDS], where PROGRAM is built from gemm.go.
Prints GFLOP/s (the best of each), the ratio of the best times, and the median
and quartiles of the ratios of neighbours (ours / OpenBLAS's speed; above 1 is ours).
"""

import statistics
import subprocess
import sys
import time

import numpy
import threadpoolctl


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    ours = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def run_ours(n, threads, times):
        print(n, threads, times, file=ours.stdin)
        return float(ours.stdout.readline())

    def run_openblas(a, b, c, times):
        best = float("inf")
        for _ in range(times):
            start = time.perf_counter()
            numpy.matmul(a, b, out=c)
            best = min(best, time.perf_counter() - start)
        return best

    blas = next(x for x in threadpoolctl.threadpool_info() if x["internal_api"] == "openblas")
    print(f"OpenBLAS {blas['version']}, kernels for {blas['architecture']}; {rounds} rounds")
    print(f"{'n':>5} threads   ours  openblas  best/best  median  quartiles")
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads):
            for n in (512, 1024, 2048):
                a = numpy.random.rand(n, n).astype("f")
                b, c = a.T.copy(), numpy.empty_like(a)
                times = max(2, int(1e9 / n**3))
                run_ours(n, threads, 1), run_openblas(a, b, c, 1)
                pairs = []
                for _ in range(rounds):
                    pairs.append((run_ours(n, threads, times), run_openblas(a, b, c, times)))
                report(n, threads, pairs)
    ours.stdin.close()
    ours.wait()


def report(n, threads, pairs):
    x, y = min(p[0] for p in pairs), min(p[1] for p in pairs)
    low, middle, high = statistics.quantiles([q / p for p, q in pairs], n=4)
    speed = 2 * n**3 / 1e9
    print(f"{n:5} {threads:7} {speed / x:6.1f} {speed / y:9.1f} {y / x:10.2f} {middle:7.2f}  {low:.2f}-{high:.2f}", flush=True)


if __name__ == "__main__":
    main()
