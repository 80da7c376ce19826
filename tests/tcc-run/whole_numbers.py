"""Writes a .npy file of small whole numbers as f16: whole_numbers.py FILE SEED EXTENT...

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import math
import random
import struct
import sys

path, seed, *shape = sys.argv[1], *map(int, sys.argv[2:])
rng = random.Random(seed)
header = str({"descr": "<f2", "fortran_order": False, "shape": tuple(shape)})
header += " " * (-(len(header) + 11) % 64) + "\n"
data = [rng.randint(-4, 4) for _ in range(math.prod(shape))]
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    file.write(struct.pack(f"<{len(data)}e", *data))
