"""What share of a compilation its proof takes, which runs while code is made: the difference that
--no-verify-pipeline makes, in elapsed time and in processor time.

    python3 bench/proofs.py [TCC [RUNS]]

Runs with the proof and without it take turns; of as many each, the one with the least time counts.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = [["bench/suite.tile"], ["bench/cluster.tile", "-D", "TN=128"], ["examples/batched.tile"],
         ["tests/gpu/cluster.tile"], ["tests/gpu/cluster_shapes.tile"], ["tests/gpu/cluster_sum.tile"],
         ["tests/gpu/dynamic.tile"], ["tests/gpu/pingpong.tile"]]
STAGES = """kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }
schedule f for sm_90a { tile m 64, n 8, k 16; stages 64; producer %s; }
"""


def seconds(command):
    """Elapsed and processor seconds of a command that must succeed."""
    start = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit("%s: failed" % " ".join(command))
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def print_share(name, command, runs):
    with_proof, without = [], []
    for _ in range(runs):
        with_proof.append(seconds(command))
        without.append(seconds(command + ["--no-verify-pipeline"]))
    cells = [name]
    for whole, rest in zip(map(min, zip(*with_proof)), map(min, zip(*without))):
        cells += [f"{1000 * whole:.0f} ms", f"{100 * (whole - rest) / whole:.1f} %"]
    print(f"| {' | '.join(cells)} |", flush=True)


def main():
    tcc = sys.argv[1] if len(sys.argv) > 1 else "tcc"
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    print("| file | elapsed | proof | of processors | proof |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        to = ["-o", os.path.join(folder, "out.ptx")]
        for name, *options in FILES:
            print_share(f"`{name}`", [tcc, os.path.join(ROOT, name), *options, *to], runs)
        for producer in ("warp", "none"):
            path = os.path.join(folder, "stages.tile")
            with open(path, "w", encoding="utf-8") as f:
                f.write(STAGES % producer)
            print_share(f"64 stages, `producer {producer}`", [tcc, path, *to], runs)


if __name__ == "__main__":
    main()
