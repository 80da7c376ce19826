"""Holds attention's result to what it should be, in a few rows: softmax_rows.py D SCALE Q.npy K.npy V.npy O.npy.
Files hold bf16 as [H, S, D]; the scores' powers of two are taken, as in attention.tir.in.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import struct
import sys

depth, scale = int(sys.argv[1]), float(sys.argv[2])


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    data = data[10 + int.from_bytes(data[8:10], "little"):]
    numbers = struct.unpack(f"<{len(data) // 2}H", data)
    numbers = [struct.unpack("<f", struct.pack("<I", n << 16))[0] for n in numbers]
    return [numbers[i:i + depth] for i in range(0, len(numbers), depth)]


q, k, v, out = map(load, sys.argv[3:])
worst = 0
for row in range(0, len(q), 37):
    first = 256 * (row // 256)  # of its head
    scores = [scale * sum(x * y for x, y in zip(q[row], key) if x) for key in k[first:first + 256]]
    top = max(scores)
    weights = [2 ** (s - top) for s in scores]
    for d in range(depth):
        want = sum(w * v[first + j][d] for j, w in enumerate(weights)) / sum(weights)
        worst = max(worst, abs(out[row][d] - want) / (abs(want) + 1 / 16))
print(f"off by {worst:.4f} at most")
sys.exit(worst > 0.01)
