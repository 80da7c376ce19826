#!/usr/bin/env python3
"""Attention of attention.tile on an H200: is it right, and how fast is it beside cuDNN's?

    tests/gpu/attention_programs.py BIN_DIR [--rounds 3] [--only full] [--seed 1]

BIN_DIR has tcc-run. Needs PyTorch with CUDA, whose scaled_dot_product_attention with cuDNN is timed in turn, and which
computes sampled rows in double precision. 16384 queries of all batches together, 16 heads of 128 and 32 of 64, and
three shapes drawn at random. Exit status 1 when an error is more than twice cuDNN's.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

import numpy
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

parser = argparse.ArgumentParser()
parser.add_argument("bin_dir", type=pathlib.Path)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--only", default="")
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()
source = pathlib.Path(__file__).parent / "attention.tile"


def save(path, t):
    numpy.save(path, t.view(torch.int16).cpu().numpy().view("<u2"))


def load(path):
    return torch.from_numpy(numpy.load(path).view("<i2").copy()).cuda().view(torch.bfloat16)


def error(out, q, k, v, causal):
    """Relative, in sampled rows of two heads."""
    length = q.shape[2]
    rows = torch.randint(0, length, (64,), generator=torch.Generator().manual_seed(1)).cuda()
    off = norm = 0.0
    for b, h in {(0, 0), (q.shape[0] - 1, q.shape[1] - 1)}:
        scores = q[b, h, rows].double() @ k[b, h].double().T / q.shape[3] ** 0.5
        if causal:
            scores = scores.masked_fill(torch.arange(length, device="cuda")[None] > rows[:, None], float("-inf"))
        want = torch.softmax(scores, -1) @ v[b, h].double()
        off += ((out[b, h, rows].double() - want) ** 2).sum().item()
        norm += (want ** 2).sum().item()
    return (off / norm) ** 0.5


def time_cudnn(q, k, v, causal):
    """The median of 20 launches, in us, after 10 that warm up."""
    times = []
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for _ in range(30):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            end.record()
            torch.cuda.synchronize()
            times.append(1000 * begin.elapsed_time(end))
    return statistics.median(times[10:]), out


def time_ours(directory, kernel, depth):
    command = [args.bin_dir / "tcc-run", source, "-D", f"D={depth}", "--kernel", kernel, "--repeat", "5", "--bench",
               "--set", f"scale={depth ** -0.5}", "--output", f"O={directory / 'O.npy'}"]
    for name in "QKV":
        command += ["--input", f"{name}={directory / name}.npy"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(re.search(r"bench +([0-9.]+) us", said)[1])


def measure(directory, kernel, batches, heads, length, depth):
    """Prints a line; whether it is right."""
    q, k, v = (torch.randn(batches, heads, length, depth, device="cuda").bfloat16() for _ in range(3))
    for name, t in (("Q", q), ("K", k), ("V", v)):
        save(directory / f"{name}.npy", t)
    causal, ours, theirs = kernel == "causal", [], []
    for _ in range(args.rounds):
        ours.append(time_ours(directory, kernel, depth))
        us, reference = time_cudnn(q, k, v, causal)
        theirs.append(us)
    errors = error(load(directory / "O.npy"), q, k, v, causal), error(reference, q, k, v, causal)
    ratio = statistics.median(t / o for t, o in zip(theirs, ours))
    flops = 4 * batches * heads * length * length * depth / (2 if causal else 1)
    us = statistics.median(ours)
    print(f"{kernel:6} B {batches:<3} H {heads:<3} S {length:<6} D {depth:<4} {us:9.1f} us {flops / us / 1e6:6.1f} "
          f"TFLOP/s, of cuDNN {ratio:.3f}, error {errors[0]:.1e} ({errors[1]:.1e})", flush=True)
    return errors[0] <= 2 * errors[1]


os.environ["TCC_FILL_WORKSPACE"] = "1"  # of tcc-run, with NaN before each launch
torch.manual_seed(args.seed)
draw = random.Random(args.seed)
shapes = [(16384 // length, 2048 // depth, length, depth) for length in (512, 2048, 4096, 16384) for depth in (128, 64)]
shapes += [(draw.randint(1, 4), draw.randint(1, 24), draw.randint(100, 5000), draw.choice((64, 80, 96, 128, 192)))
           for _ in range(3)]
with tempfile.TemporaryDirectory() as name:
    right = [measure(pathlib.Path(name), kernel, *shape) for shape in shapes for kernel in ("full", "causal")
             if args.only in kernel]
sys.exit(not all(right))
