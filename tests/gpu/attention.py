#!/usr/bin/env python3
"""Attention of tests/tcc-run/attention*.tir.in on an H200: is it right, and how fast is it beside cuDNN's?

    tests/gpu/attention.py BIN_DIR [--depth 128] [--heads 64] [--length 4096] [--rounds 5] [--program attention]

BIN_DIR has tcc-opt and tcc-run. Needs PyTorch with CUDA, whose scaled_dot_product_attention with cuDNN is timed in
turn, and which computes sampled rows in double precision. Exit status 1 when the error is more than twice cuDNN's.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import numpy
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

LEVELS = ("pipeline-copies,specialize-warps,distribute-grid,assign-layouts,chunk-epilogue,exchange-tiles,allocate-shared",
          "lower-to-nvvm,expand-math,canonicalize,cse,licm,dce")

parser = argparse.ArgumentParser()
parser.add_argument("bin_dir", type=pathlib.Path)
parser.add_argument("--depth", type=int, default=128)
parser.add_argument("--heads", type=int, default=64, help="of all batches")
parser.add_argument("--length", type=int, default=4096)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--program", default="attention_ahead")
args = parser.parse_args()
heads, length, depth = args.heads, args.length, args.depth
source = pathlib.Path(__file__).parent / f"../tcc-run/{args.program}.tir.in"


def save(path, t):
    numpy.save(path, t.view(torch.int16).cpu().numpy().view("<u2"))


def load(path):
    return torch.from_numpy(numpy.load(path).view("<i2").copy()).cuda().view(torch.bfloat16)


def error(out, q, k, v):
    """Relative, in sampled rows of three heads."""
    rows = torch.randint(0, length, (128,), generator=torch.Generator().manual_seed(1)).cuda()
    off = norm = 0.0
    for h in {0, heads // 2, heads - 1}:
        scores = q[h, rows].double() @ k[h].double().T / depth ** 0.5
        want = torch.softmax(scores, -1) @ v[h].double()
        off += ((out[h, rows].double() - want) ** 2).sum().item()
        norm += (want ** 2).sum().item()
    return (off / norm) ** 0.5


def time_cudnn(q, k, v):
    """The median of 20 launches, in us, after 20 that warm up."""
    times = []
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for i in range(40):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            out = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])
            end.record()
            torch.cuda.synchronize()
            times.append(1000 * begin.elapsed_time(end))
    return statistics.median(times[20:]), out[0]


os.environ["TCC_FILL_WORKSPACE"] = "1"  # of tcc-run, with NaN before each launch
torch.manual_seed(1)
q, k, v = (torch.randn(heads, length, depth, device="cuda").bfloat16() for _ in range(3))
with tempfile.TemporaryDirectory() as name:
    dir = pathlib.Path(name)
    text = source.read_text().replace("@D@", str(depth))
    (dir / "a.tir").write_text(text.replace("@SCALE@", repr(1.4426950408889634 / depth ** 0.5)))
    for before, after, passes in (("a", "b", LEVELS[0]), ("b", "c", LEVELS[1])):
        subprocess.run([args.bin_dir / "tcc-opt", dir / f"{before}.tir", f"--passes={passes}",
                        "-o", dir / f"{after}.tir"], check=True)
    for name, t in (("Q", q), ("K", k), ("V", v)):
        save(dir / f"{name}.npy", t)
    command = [args.bin_dir / "tcc-run", dir / "c.tir", "--repeat", "5", "--bench"]
    for name in "QKV":
        command += ["--input", f"{name}={dir / name}.npy"]
    command += ["--output", f"O={dir / 'O.npy'}"]
    ours, theirs = [], []
    for _ in range(args.rounds):
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ours.append(float(re.search(r"bench +([0-9.]+) us", said)[1]))
        us, reference = time_cudnn(q, k, v)
        theirs.append(us)
    errors = error(load(dir / "O.npy"), q, k, v), error(reference, q, k, v)

flops = 4 * heads * length * length * depth
for name, us, e in ("tcc", ours, errors[0]), ("cuDNN", theirs, errors[1]):
    print(f"{name:6} {statistics.median(us):9.1f} us {flops / statistics.median(us) / 1e6:7.1f} TFLOP/s, error {e:.2e}")
print(f"ratio  {statistics.median(t / o for t, o in zip(theirs, ours)):.3f}")
sys.exit(errors[0] > 2 * errors[1])
