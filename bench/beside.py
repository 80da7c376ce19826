"""Products beside another kernel that holds some multiprocessors: tiles dealt out beforehand, and drawn.

    python3 bench/beside.py

Needs torch and cupy. The other kernel holds the shared memory of so many multiprocessors for longer than a product takes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import statistics
import time

import cupy
import tcc
import torch

SIZE, ROUNDS, HELD_NS = 4096, 21, 3_000_000
SOURCE = """kernel product(A: bf16[M, K], B: bf16[N, K]) -> (C: bf16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }
schedule product for sm_90a { tile m 128, n 256, k 64; persistent %s; }"""
HOLD = cupy.RawKernel(r"""extern "C" __global__ void hold(long long ns)
{
    long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < ns);
}""", "hold")
HOLD_BYTES = 200 * 1024


def time_us(kernel, arrays, out, held: int) -> float:
    mine, other = torch.cuda.Stream(), torch.cuda.Stream()
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        if held:
            with cupy.cuda.ExternalStream(other.cuda_stream):
                HOLD((held,), (1,), (HELD_NS,), shared_mem=HOLD_BYTES)
            time.sleep(0.0005)  # it runs by now
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record(mine)
        kernel(*arrays, out=out, stream=mine.cuda_stream)
        end.record(mine)
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    return statistics.median(times)


def main() -> None:
    HOLD.max_dynamic_shared_size_bytes = HOLD_BYTES
    A, B = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out, want = torch.empty_like(A), (A.double() @ B.double().T)
    kernels = {how: tcc.jit(SOURCE % how) for how in ("static", "dynamic")}
    count = torch.cuda.get_device_properties(0).multi_processor_count
    print(f"{torch.cuda.get_device_name()}, {count} multiprocessors, {SIZE}^3, bf16, us")
    print(f"{'held':>6} " + " ".join(f"{how:>9}" for how in kernels))
    for held in (0, 4, 16, 33, 66):
        row = []
        for kernel in kernels.values():
            out.fill_(float("nan"))
            row.append(time_us(kernel, (A, B), out, held))
            error = (out.double() - want).norm() / want.norm()
            assert error < 3e-3, error
        print(f"{held:>6} " + " ".join(f"{us:9.1f}" for us in row), flush=True)


if __name__ == "__main__":
    main()
