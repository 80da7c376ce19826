"""Prints a kernel that takes a tile through layouts: layouts.py convert | rows | columns

convert: from each of the layouts to three others. rows, columns: what is left of each layout when the sum, the
smallest or the largest number of a row or column is taken from it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import sys

# Rows and columns of the fragments of a warp.
FRAGMENTS = {
    "mma_d": (16, 8),
    "mma_a16": (16, 16),
    "mma_a32": (16, 8),
    "mma_a8": (16, 32),
    "mma_a4": (16, 64),
    "mma_b16": (16, 8),
    "ldmatrix": (8, 8),
    "gfx11_operand_32": (16, 16),
    "gfx11_d_32": (16, 16),
    "gfx12_operand16_32": (16, 16),
    "gfx12_operand8_32": (16, 16),
    "gfx12_operand4_k32_32": (16, 32),
    "gfx12_d_32": (16, 16),
}


def tile(fragment, extents, *repeats):
    text = ", ".join(f"{where} {n}" for where, n in repeats if n > 1)
    layout = f"{fragment}({text})" if text else fragment
    return f"tile<f32[{extents[0]}, {extents[1]}], {layout}>"


def below_each_other(fragment, rows, cols):
    """16 rows of each of four warps."""
    width = max(32, cols)
    repeats = ("rows", 16 // rows), ("cols", width // cols), ("warps rows", 4)
    return tile(fragment, (64, width), *repeats)


def conversions():
    types = [below_each_other(name, *size) for name, size in FRAGMENTS.items() if size[1] <= 32]
    types += [tile("wgmma_d", (64, 32), ("cols", 4)), tile("wgmma_a", (64, 32), ("cols", 2))]
    n, at = len(types), 0
    lines = ["%x0 = tile.load %A, %m, %n {dims = [0, 1]} : " + types[0]]
    for stride in (1, 3, 7):
        for start in range(n):
            for to in (start, (start + stride) % n):
                if to != at:
                    lines.append(f"%x{len(lines)} = tile.convert %x{len(lines) - 1} : {types[to]}")
                at = to
    lines.append(f"tile.store %x{len(lines) - 1}, %C, %n, %m, %n {{dims = [1, 2], copy = interleaved}}")
    return lines


def reductions(dim):
    lines, plane = [], 0
    for name, (rows, cols) in FRAGMENTS.items():
        if dim == 1:
            whole = below_each_other(name, rows, cols)
            part = tile(name, (64, 1), ("rows", 16 // rows), ("warps rows", 4))
        else:
            whole = tile(name, (16, 8 * cols), ("rows", 16 // rows), ("warps cols", 4), ("cols", 2))
            part = tile(name, (1, 8 * cols), ("warps cols", 4), ("cols", 2))
        for kind in "sum", "min", "max":
            p = plane
            lines += [
                f"%p{p} = arith.const {{value = {p}}} : i32",
                f"%a{p} = tile.load %A, %m, %n {{dims = [0, 1]}} : {whole}",
                f"%r{p} = tile.reduce %a{p} {{dim = {dim}, kind = {kind}}} : {part}",
                f"%b{p} = tile.broadcast %r{p} {{dims = [0, 1]}} : {whole}",
                f"%s{p} = arith.sub %b{p}, %a{p} : {whole}",
                f"tile.store %s{p}, %C, %p{p}, %m, %n {{dims = [1, 2], copy = interleaved}}",
            ]
            plane += 1
    return lines


what = sys.argv[1]
rows = 16 if what == "columns" else 64
lines = conversions() if what == "convert" else reductions(1 if what == "rows" else 0)
print("module {target = sm_90a}")
print("func @f(%A: tensor<f32[M, N]>, %C: tensor<f32[P, M, N]>) {roles = [in, out], dims = [M, N, P]} {")
print(f"  tile.ctas {{grid = [($M + {rows - 1}) / {rows}]}} {{\n  ^(%cta: i32):")
print(f"    %step = arith.const {{value = {rows}}} : i32\n    %m = arith.mul %cta, %step : i32")
print("    %n = arith.const {value = 0} : i32\n    async.role {name = consumer, warps = 4} {")
print("      " + "\n      ".join(lines))
print("    }\n  }\n  return\n}")
