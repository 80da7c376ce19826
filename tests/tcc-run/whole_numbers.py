"""Writes a .npy file of small whole numbers as f16: whole_numbers.py FILE SEED EXTENT... [--bf16 | --f32] [--most N] [--share X]

--bf16, --f32   as such        --most   up to so much, 4
--share  of numbers that are drawn, all; others are 0

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import math
import random
import struct

parser = argparse.ArgumentParser()
parser.add_argument("path")
parser.add_argument("seed", type=int)
parser.add_argument("shape", type=int, nargs="+")
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--f32", action="store_true")
parser.add_argument("--most", type=int, default=4)
parser.add_argument("--share", type=float, default=1)
args = parser.parse_args()

rng = random.Random(args.seed)
descr = "<V2" if args.bf16 else "<f4" if args.f32 else "<f2"
header = str({"descr": descr, "fortran_order": False, "shape": tuple(args.shape)})
header += " " * (-(len(header) + 11) % 64) + "\n"
n = math.prod(args.shape)
data = [rng.randint(-args.most, args.most) for _ in range(n)]
if args.share < 1:
    data = [x if rng.random() < args.share else 0 for x in data]
with open(args.path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    if args.bf16:
        file.write(b"".join(struct.pack("<f", x)[2:] for x in data))
    else:
        file.write(struct.pack(f"<{n}{'f' if args.f32 else 'e'}", *data))
