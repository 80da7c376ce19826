"""Writes a .npy file of small whole numbers as f16: whole_numbers.py FILE SEED EXTENT... [--bf16 | --f32] [--most N] [--share X]

--bf16, --f32   as such        --most   up to so much, 4
--share  of numbers that are drawn, all; others are 0

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import math
import random
import struct


def write(path, shape, kind, draw):
    """Writes the file: draw() gives each number; the kind is f16, bf16 or f32."""
    descr = {"f16": "<f2", "bf16": "<V2", "f32": "<f4"}[kind]
    header = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    n = math.prod(shape)
    data = [draw() for _ in range(n)]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        if kind == "bf16":
            file.write(b"".join(struct.pack("<f", x)[2:] for x in data))
        else:
            file.write(struct.pack(f"<{n}{'f' if kind == 'f32' else 'e'}", *data))


def main():
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
    data = [rng.randint(-args.most, args.most) for _ in range(math.prod(args.shape))]
    if args.share < 1:
        data = [x if rng.random() < args.share else 0 for x in data]
    write(args.path, args.shape, "bf16" if args.bf16 else "f32" if args.f32 else "f16", iter(data).__next__)


if __name__ == "__main__":
    main()
