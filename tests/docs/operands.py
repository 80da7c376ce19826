"""Compiles a product for each cell of a table of operands: operands.py docs/types.md

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import collections
import re
import subprocess
import sys

TARGETS = {
    "`sm_90a`": ["sm_90a"],
    "`sm_89` to `sm_120`": ["sm_89", "sm_100", "sm_120"],
    "`sm_80` to `sm_87`": ["sm_80", "sm_87"],
    "`sm_75`": ["sm_75"],
    "`sm_72`": ["sm_72"],
    "`sm_70`": ["sm_70"],
    "`sm_50` to `sm_62`": ["sm_50", "sm_62"],
    "`gfx11xx`": ["gfx1100", "gfx1151"],
    "`gfx12xx`": ["gfx1200", "gfx1201"],
}


def programs(operands, summed):
    """What a row says of the operands, as kernels of one product each."""
    operands, _, converted = operands.partition(", converted to ")
    for element in re.findall(r"`(\w+)`", operands):
        for to in re.findall(r"`(\w+)`", converted) or [element]:
            a = f"{to}(A[m, k])" if converted else "A[m, k]"
            total, result = ("sum", summed.strip("`")) if "`" in summed else (f"sum:{element}", element)
            yield (f"kernel f(A: {element}[M, K], B: {to}[N, K]) -> (C: {result}[M, N]) "
                   f"{{ C[m, n] = {total}(k) {a} * B[n, k]; }}")


def multiplied(programs, target):
    """Those whose product is one of instructions, of kernels that are compiled as one file."""
    left = list(programs)
    while left:
        together = "\n".join(text.replace("kernel f(", f"kernel f{i}(") for i, text in enumerate(left))
        done = subprocess.run(["tcc", "-", "--target=" + target, "--tiles=1", "--emit=tile", "-o", "-"], input=together,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=False)
        lines = re.findall(r"^<stdin>:(\d+):\d+: error: not supported yet", done.stderr, re.MULTILINE)
        if bool(done.returncode) != bool(lines):
            sys.exit(f"{target}: {together}\n{done.stderr}")
        if not lines:
            functions = dict(re.findall(r"^func @(\w+)\((.*?)^}", done.stdout, re.MULTILINE | re.DOTALL))
            return [text for i, text in enumerate(left) if "tile.mma" in functions[f"f{i}"]]
        # What an earlier phase refuses hides what a later one does.
        left = [text for i, text in enumerate(left, 1) if str(i) not in lines]
    return []


def main(path):
    with open(path, encoding="utf-8") as file:
        head, *rows = file.read().partition("| operands |")[2].partition("\n\n")[0].splitlines()
    columns = [cell.strip() for cell in head.strip("| ").split("|")[1:]]
    failed = not rows
    said = collections.defaultdict(list)
    for row in rows[1:]:
        operands, summed, *cells = (cell.strip() for cell in row.strip("| ").split("|"))
        for column, cell in zip(columns, cells):
            for target in TARGETS[column]:
                said[target, cell] += programs(operands, summed)
    for (target, cell), of_cell in said.items():
        by_instructions = multiplied(of_cell, target)
        for program in of_cell:
            if (program in by_instructions) != (cell == "yes"):
                print(f"{path}: error: {cell!r} is wrong for {target}: {program}")
                failed = True
    return failed


sys.exit(main(sys.argv[1]))
