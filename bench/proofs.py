"""What share of a compilation's processor time its proof takes: the difference that --no-verify-pipeline makes.

    python3 bench/proofs.py [TCC [RUNS]]

Runs with the proof and without it take turns; of as many each, the one with the least time counts.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = [["bench/suite.tile"], ["bench/cluster.tile", "-D", "TN=128"], ["examples/batched.tile"],
         ["tests/gpu/cluster.tile"], ["tests/gpu/cluster_shapes.tile"], ["tests/gpu/dynamic.tile"],
         ["tests/gpu/pingpong.tile"]]
STAGES = """kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }
schedule f for sm_90a { tile m 64, n 8, k 16; stages 64; producer %s; }
"""


def seconds(command):
    """Processor seconds of a command that must succeed."""
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit("%s: failed" % " ".join(command))
    return usage.ru_utime + usage.ru_stime


def print_share(name, command, runs):
    with_proof, without = [], []
    for _ in range(runs):
        with_proof.append(seconds(command))
        without.append(seconds(command + ["--no-verify-pipeline"]))
    proof = min(with_proof) - min(without)
    print(f"| {name} | {1000 * min(with_proof):.0f} ms | {100 * proof / min(with_proof):.1f} % |", flush=True)


def main():
    tcc = sys.argv[1] if len(sys.argv) > 1 else "tcc"
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    print("| file | compilation | proof |\n|---|---|---|")
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
