"""Products by tcc beside the Triton kernels that PyTorch's compiler generates and tunes for each shape, and cuBLAS.

    python3 bench/pytorch.py [--rounds=N] [KERNEL…]

Needs torch with Triton and a GPU. tcc's kernels are compiled once, with no extent known; Triton's candidates for each
shape are compiled and measured by PyTorch (max_autotune; on Hopper and later also persistent ones that load by TMA).
Each contender's launches are captured in a CUDA graph; the graphs are replayed in turn, in another order each round,
and the median round counts. All results are compared with torch's in double precision.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import math
import statistics
import sys
import time

import tcc
import torch
import torch._inductor.config as inductor

KERNELS = {
    "bf16": ("kernel bf16(A: bf16[M, K], B: bf16[N, K]) -> (C: bf16[M, N])"
             "{ C[m, n] = sum(k) A[m, k] * B[n, k]; }", lambda a, b: a @ b.T),
    "gelu": ("kernel gelu_of(A: bf16[M, K], B: bf16[N, K], bias: bf16[N]) -> (C: bf16[M, N])"
             "{ acc[m, n] = sum(k) A[m, k] * B[n, k]; C[m, n] = gelu(acc[m, n] + bias[n]); }",
             lambda a, b, bias: torch.nn.functional.gelu(torch.nn.functional.linear(a, b, bias))),
    "residual": ("kernel residual(A: bf16[M, K], B: bf16[N, K], R: bf16[M, N]) -> (C: bf16[M, N])"
                 "{ acc[m, n] = sum(k) A[m, k] * B[n, k]; C[m, n] = acc[m, n] + R[m, n]; }",
                 lambda a, b, r: a @ b.T + r),
    "i8": ("kernel i8_of(A: bf16[M, K], B: i8[N, K], s: bf16[N]) -> (C: bf16[M, N])"
           "{ acc[m, n] = sum(k) A[m, k] * bf16(B[n, k]); C[m, n] = acc[m, n] * s[n]; }",
           lambda a, b, s: (a @ b.to(torch.bfloat16).T) * s),
}
SHAPES = {  # M, N, K
    "bf16": [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 512),
             (16, 4096, 4096), (64, 6144, 4096), (128, 7168, 2048), (512, 4096, 14336), (2048, 10240, 8192),
             (1000, 1000, 1000), (4095, 4095, 4095)],
    "gelu": [(4096, 4096, 4096), (4096, 14336, 4096)],
    "residual": [(4096, 4096, 4096)],
    "i8": [(16, 4096, 4096), (4096, 4096, 4096)],
}
BATCH_MS, WARM_MS = 5, 10


def tensors(kernel, m, n, k):
    def normal(*shape):
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16)

    a, b = normal(m, k), normal(n, k)
    if kernel == "i8":
        b = torch.randint(-127, 128, (n, k), device="cuda", dtype=torch.int8)
    return (a, b) + {"bf16": (), "gelu": (normal(n),), "residual": (normal(m, n),), "i8": (normal(n),)}[kernel]


def captured(call):
    """A graph of as many launches as take some BATCH_MS, and their number."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(10):
        call()
    torch.cuda.synchronize()
    count = max(1, min(500, math.ceil(BATCH_MS / 1000 / ((time.perf_counter() - begin) / 10))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    return graph, count


def round_us(graph, count):
    """Microseconds a launch, in the state that the contender itself causes."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(math.ceil(WARM_MS / BATCH_MS)):
        graph.replay()
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / count


def check(name, result, want):
    error = ((result.double() - want).norm() / want.norm()).item()
    if not error < 8e-3:
        sys.exit(f"{name}: relative error {error:.1e}")


def measure(kernel, jit, torchs, shape, rounds):
    m, n, k = shape
    args = tensors(kernel, m, n, k)
    want = torchs(*(t.double() if t.is_floating_point() else t for t in args)) if kernel != "i8" else \
        (args[0].double() @ args[1].double().T) * args[2].double()
    out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    torch._dynamo.reset()
    by_triton = torch.compile(torchs, dynamic=False)
    calls = {"tcc": lambda: jit(*args, out=out), "Triton": lambda: by_triton(*args), "PyTorch": lambda: torchs(*args)}
    for name, call in calls.items():
        result = call()
        check(f"{name}: {kernel} {shape}", out if name == "tcc" else result, want)
    del want
    graphs = {name: captured(call) for name, call in calls.items()}
    times = {name: [] for name in calls}
    for r in range(rounds):
        names = list(calls)
        for name in names[r % 3:] + names[:r % 3]:
            times[name].append(round_us(*graphs[name]))
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("kernels", nargs="*", choices=[*KERNELS, []], metavar="KERNEL")
    options = parser.parse_args()
    inductor.max_autotune = True
    inductor.max_autotune_gemm_backends = "TRITON"
    inductor.triton.enable_persistent_tma_matmul = True
    import triton
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}\n")
    print("| kernel | M x N x K | tcc | Triton | PyTorch | tcc's speed / Triton's | / PyTorch's |")
    print("|---|---|--:|--:|--:|--:|--:|")
    ratios = {"Triton": [], "PyTorch": []}
    for kernel in options.kernels or KERNELS:
        source, torchs = KERNELS[kernel]
        jit = tcc.jit(source)
        for shape in SHAPES[kernel]:
            us = measure(kernel, jit, torchs, shape, options.rounds)
            for name in ratios:
                ratios[name].append(us[name] / us["tcc"])
            print(f"| {kernel} | {' x '.join(map(str, shape))} | " + " | ".join(f"{us[n]:.1f} us" for n in us)
                  + " | " + " | ".join(f"{r[-1]:.3f}" for r in ratios.values()) + " |", flush=True)
    print("\nGeometric means: " + ", ".join(f"{statistics.geometric_mean(r):.3f} of {name}'s" for name, r in ratios.items()))


if __name__ == "__main__":
    main()
