"""Writes numbers of which those in the middle are lost if they are added in order: in_order.py OUT.npy N
With --zeros, checks that N sums of them are 0: in_order.py --zeros IN.npy N

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import struct
import sys

TERMS = [2.0**24, 1.0, 1.0, 1.0, -(2.0**24)]


def write(path, n):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(TERMS)}, {n}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("ascii"))
        for term in TERMS:
            file.write(struct.pack("<f", term) * n)


def are_zero(path, n):
    with open(path, "rb") as file:
        data = file.read()[-4 * n :]
    return struct.unpack(f"<{n}f", data) == (0.0,) * n


if sys.argv[1] == "--zeros":
    sys.exit(not are_zero(sys.argv[2], int(sys.argv[3])))
write(sys.argv[1], int(sys.argv[2]))
