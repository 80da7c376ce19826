"""Prints a kernel that gathers elements: gathers.py TARGET ELEM; or writes what it reads, and what it is to store:
gathers.py data FOLDER; or whole numbers from LEAST to MOST: gathers.py numbers FILE LEAST MOST EXTENT...

Y[m, n] = X[1, r[m], c[n]], 0 where a coordinate is outside. Elements of less than a byte are stored as i32.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import math
import pathlib
import random
import struct
import sys

P, M, N = 2, 13, 150


def write(path, shape, kind, numbers):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }" % (kind, ", ".join(map(str, shape)))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    letter = {"<i4": "i", "<f4": "f"}[kind]
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                     + struct.pack(f"<{len(numbers)}{letter}", *numbers))


def data(folder):
    draw = random.Random(1)
    rows, cols = ([draw.randint(-2, n + 1) for _ in range(n)] for n in (M, N))
    rows[:3], cols[:3] = [-1, M, 2 ** 31 - 1], [-2 ** 31, N, N - 1]
    x = [float(i + 1) for i in range(P * M * N)]
    y = [x[(M + r) * N + c] if 0 <= r < M and 0 <= c < N else 0.0 for r in rows for c in cols]
    for name, shape, kind, numbers in (("X", (P, M, N), "<f4", x), ("r", (M,), "<i4", rows), ("c", (N,), "<i4", cols),
                                       ("want", (M, N), "<f4", y)):
        write(folder / f"{name}.npy", shape, kind, numbers)


def kernel(target, elem):
    stored = "i32" if elem in ("i4", "u4") else elem
    cast = "" if stored == elem else f"%y = arith.cast %g : tile<{stored}[8, 128]>"
    return f"""module {{target = {target}}}
func @f(%X: tensor<{elem}[P, M, N]>, %r: tensor<i32[M]>, %c: tensor<i32[N]>, %Y: tensor<{stored}[M, N]>) \
{{roles = [in, in, in, out], dims = [P, M, N]}} {{
  tile.grid {{axes = [m, n], extents = [$M, $N], tile = [8, 128], spread = [4, 4, 1]}} {{
  ^(%m: i32, %n: i32):
    %p = arith.const {{value = 1}} : i32
    %a = tile.load %r, %m {{dims = [0, -1]}} : tile<i32[8, 1]>
    %b = tile.load %c, %n {{dims = [-1, 0]}} : tile<i32[1, 128]>
    %rows = tile.broadcast %a {{dims = [0, 1]}} : tile<i32[8, 128]>
    %cols = tile.broadcast %b {{dims = [0, 1]}} : tile<i32[8, 128]>
    %g = tile.gather %X, %p, %rows, %cols : tile<{elem}[8, 128]>
    {cast}
    tile.store {'%y' if cast else '%g'}, %Y, %m, %n {{dims = [0, 1], copy = interleaved}}
  }}
  return
}}"""


def numbers(path, least, most, *shape):
    draw = random.Random(path)
    write(pathlib.Path(path), shape, "<i4", [draw.randint(least, most) for _ in range(math.prod(shape))])


if sys.argv[1] == "data":
    data(pathlib.Path(sys.argv[2]))
elif sys.argv[1] == "numbers":
    numbers(sys.argv[2], *map(int, sys.argv[3:]))
else:
    print(kernel(*sys.argv[1:]))
