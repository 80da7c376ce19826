"""Compares what docs/tutorial-wmma.md says in tables with where it is from: tutorial_wmma.py DOCS_DIR

The instructions of a loop are those that its listings count, and speeds those of the pages where they were
measured.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import re
import sys

PRODUCTS = [32, 32, 16 * 8 * 16, 64 * 256 * 16 / 4]  # of a warp for each instruction that multiplies


def read(name):
    with open(f"{sys.argv[1]}/{name}", encoding="utf-8") as file:
        return file.read()


def rows():
    """(rows that the tutorial is to have)"""
    counts = re.findall(r"^(\d+) of (\d+) instructions$", page, flags=re.MULTILINE)
    loops = list(dict.fromkeys(int(all_of_it) for _, all_of_it in counts))
    multiply = [len(re.findall(r" FFMA ", page)), *(int(n) for n, _ in counts if n in ("512", "64"))]
    multiply.append(len(re.findall(r" HGMMA", page)))
    yield "| instructions of the loop | " + " | ".join(str(n) for n in loops) + " |"
    yield "| that multiply | " + " | ".join(str(n) for n in multiply) + " |"
    each = [n * p / of for n, p, of in zip(multiply, PRODUCTS, loops)]
    yield "| products of a warp for each | " + " | ".join(f"{n:.3g}" if n < 100 else f"{n:.0f}" for n in each) + " |"


def speeds():
    """(what the tutorial is to say of speeds)"""
    results, performance = read("gpu-results.md"), read("performance.md")
    yield " | ".join(re.search(r"`k 8; warps 8; stages 4`\s+([\d.]+) \(([\d.]+)\)", results).groups()) + ", without tf32 |"
    row = re.search(r"^\| nn \| M=4096,K=4096,N=4096 \|.*\| ([\d.]+) \| [\d. /]+ \| [\d.]+ / ([\d.]+) \|$", results, flags=re.MULTILINE)
    yield " | ".join(row.groups()) + " |"
    row = re.search(r"^\| nn \| 4096 x 4096 x 4096 \|.*\| ([\d.]+) \| [\d. /]+ \| [\d.]+ / \**([\d.]+)\** \|$", performance, flags=re.MULTILINE)
    yield " | ".join(row.groups()) + " |"


def on_one_machine():
    """(rows of the table that is drawn, up to the speed), of what was measured there"""
    results = read("gpu-results.md")
    once = dict(re.findall(r"`instr\s(\w+)` (\d+(?:\.\d+)?)", results))
    older = dict(re.findall(r"^\| f16 into f16, nn \| (sm_\d+) \| .* \| (\d+) \| \|$", results, flags=re.MULTILINE))
    for name, target, elem, speed in (("naive", "sm_90a", "f16", once["naive"]), ("fma", "sm_90a", "f32", once["fma"]),
                                      ("wmma", "sm_70", "f16", older["sm_70"]), ("mma.sync", "sm_90a", "f16", once["mma"]),
                                      ("wgmma", "sm_90a", "f16", once["wgmma"])):
        yield f"| `{name}` | {target} | {elem} | {speed} |"
    yield f"| `mma.sync` of sm_75 | sm_75 | f16 | {older['sm_75']} |"


page = read("tutorial-wmma.md")
lacks = [row for row in (*rows(), *speeds(), *on_one_machine()) if row not in page]
for row in lacks:
    print(f"docs/tutorial-wmma.md: error: it lacks\n{row}")
sys.exit(bool(lacks))
