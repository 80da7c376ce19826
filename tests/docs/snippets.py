"""Code blocks of Markdown files, and whether they are what a program prints.

In a block a line of nothing but '…' stands for any lines, and '…' in a line for any characters.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import difflib
import re
from dataclasses import dataclass

CUT = "…"


@dataclass
class Block:
    heading: str  # the last one before it, without its '#'
    info: str  # what follows the opening ```
    line: int  # of its first line, from 1
    lines: list


def blocks(path):
    """Every fenced block of a file, in order."""
    heading, block, found = "", None, []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            if block and line == "```":
                block = None
            elif block:
                block.lines.append(line)
            elif line.startswith("```"):
                block = Block(heading, line[3:].strip(), number + 1, [])
                found.append(block)
            elif line.startswith("#"):
                heading = line.lstrip("#").strip()
    return found


def line_matches(want, got):
    return re.fullmatch(".*".join(map(re.escape, want.split(CUT))), got) is not None


def common(want, got):
    """How many lines agree from the first on."""
    n = 0
    while n < min(len(want), len(got)) and line_matches(want[n], got[n]):
        n += 1
    return n


def mismatch(want, got):
    """None when the lines `got` are what a block shows, else (line of the block, what is wrong)."""
    cuts = [i for i, line in enumerate(want) if line.strip() == CUT]
    at = 0
    for begin, end in zip([-1] + cuts, cuts + [len(want)]):
        part = want[begin + 1 : end]
        last = len(got) - len(part)
        starts = range(0, 1) if begin < 0 else range(last, last + 1) if end == len(want) \
            else range(at, last + 1)
        best = max((s for s in starts if s >= at), key=lambda s: common(part, got[s:]), default=at)
        n = common(part, got[best:])
        if n < len(part):
            printed = got[best + n : best + n + 1]
            if n == 0:
                printed = difflib.get_close_matches(part[0], got[at:], 1, 0)
            return begin + 1 + n, f"shown:   {part[n]}\nprinted: {(printed or ['(nothing)'])[0]}"
        at = best + n
    if at < len(got) and not (cuts and cuts[-1] == len(want) - 1):
        return len(want), f"shown:   (nothing)\nprinted: {got[at]}"
    return None


def without_numbers(line):
    return re.sub(r"%\d+", "%" + CUT, line)


def renumber(document, block, got):
    """Gives a block of a document the numbers of the values in `got`; False where that does not make it right."""
    loose = [without_numbers(line) for line in block.lines]
    if mismatch(loose, got):
        return False
    at, new = 0, []
    for line, pattern in zip(block.lines, loose):
        if line.strip() != CUT:
            at = next(i for i in range(at, len(got)) if line_matches(pattern, got[i]))
            if CUT not in line:
                line = got[at]
            at += 1
        new.append(line)
    with open(document, encoding="utf-8") as file:
        lines = file.read().split("\n")
    lines[block.line - 1 : block.line - 1 + len(new)] = new
    with open(document, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return True
