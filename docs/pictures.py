"""Draws the pictures of the documents that are made of the compiler's own tables:
pictures.py pipeline passes/pipeline.c > PICTURE.svg, pictures.py lanes ir/fragments.def > PICTURE.svg,
pictures.py speeds docs/tutorial-wmma.md > PICTURE.svg, of the table below the place where that is shown

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import colorsys
import re
import sys

STYLE = """
.back { fill: #ffffff } .text { fill: #24292f } .soft { fill: #57606a } .line { stroke: #57606a; fill: none }
.box { fill: #ddf4ff; stroke: #0969da } .tip { fill: #57606a } .cells path { stroke: #ffffff } .cells text { fill: #24292f }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117 } .text { fill: #e6edf3 } .soft { fill: #9da7b3 } .line { stroke: #9da7b3 }
.box { fill: #0c2d6b; stroke: #58a6ff } .tip { fill: #9da7b3 } .cells path { stroke: #0d1117 }
}
"""


def text(x, y, words, style="text", anchor="start", more=""):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>{words}</text>'


def picture(width, height, parts):
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" font-family="sans-serif" font-size="12">')
    yield f'<style>{STYLE}</style><rect class="back" width="{width}" height="{height}" rx="6"/>'
    yield from parts
    yield "</svg>"


# ---- the levels of the IR, and the passes between them -------------------------------------

BOX, GAP, LINE, TOP = 96, 168, 16, 92  # pixels


def lists_of_passes(path):
    """What the macros of pipeline.c, and the pipelines made of them, stand for."""
    with open(path, encoding="utf-8") as file:
        source = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S).replace("\\\n", " ")
    lists = {}
    for name, value in re.findall(r"^(?:#define |const char tcc_pipeline_)(\w+)(?:\[\] =)? (.*\".*)$", source, flags=re.M):
        words = [lists.get(word, word.strip('"')) for word in re.findall(r'"[^"]*"|\b[A-Z_]+\b', value)]
        lists[name] = "".join(words)
    return lists


def names_from(lists, name, before):
    return [p for p in lists[name][len(lists[before]) if before else 0 :].split(",") if p]


def arrow(x, y, length):
    yield f'<path class="line" d="M{x} {y} h{length - 7}"/>'
    yield f'<path class="tip" d="M{x + length} {y} l-8 -4 v8 z"/>'


def draw_pipeline(path):
    lists = lists_of_passes(path)
    nvidia, amd = names_from(lists, "to_nvvm", "TO_ASYNC"), names_from(lists, "to_amdgcn", "TO_ASYNC")
    last = [f"{a} or {b}" if a != b else a for a, b in zip(nvidia, amd)] + [f"{p} (AMD)" for p in amd[len(nvidia) :]]
    steps = [
        names_from(lists, "TO_TILE", None),
        names_from(lists, "TO_ASYNC", "TO_TILE"),
        [re.sub("^lower-to-nvvm or lower-to-amdgcn$", "lower-to-nvvm, -amdgcn", p) for p in last],
        ["the proof", "LLVM"],
    ]
    boxes = [("tensor", "whole tensors", "--emit=ir"), ("tile", "one CTA's tiles", "--emit=tile"),
             ("async", "stages and roles", "--emit=async"), ("target", "instructions", "--emit=tir"),
             ("code", "PTX, code object", "")]
    width = 32 + len(boxes) * BOX + len(steps) * GAP
    height = TOP + LINE * max(map(len, steps)) + 12
    return picture(width, height, draw_steps(boxes, steps))


def draw_steps(boxes, steps):
    for i, (name, what, option) in enumerate(boxes):
        x = 16 + i * (BOX + GAP)
        yield f'<rect class="box" x="{x}" y="20" width="{BOX}" height="46" rx="6"/>'
        yield text(x + BOX / 2, 39, name, anchor="middle", more=' font-weight="bold" font-size="14"')
        yield text(x + BOX / 2, 57, what, "soft", "middle", ' font-size="10.5"')
        yield text(x + BOX / 2, 82, option, "soft", "middle", ' font-family="monospace" font-size="11"')
    for i, names in enumerate(steps):
        x = 16 + BOX + i * (BOX + GAP)
        yield from arrow(x + 4, 43, GAP - 8)
        for j, name in enumerate(names):
            style = "soft" if name.startswith("choose-") else "text"
            yield text(x + GAP / 2, TOP - 16 + LINE * (j + 1), name, style, "middle", ' font-size="11"')


# ---- which lane has which element ----------------------------------------------------------

CELL, HEAD = (34, 17), 44  # pixels
SHOWN = [
    [("mma_a16", "A of mma.sync m16n8k16", "m", "k"), ("mma_d", "D of mma.sync, wgmma", "m", "n"),
     ("mma_b16", "B of mma.sync", "k", "n")],
    [("gfx11_operand_32", "A of v_wmma, RDNA3", "m", "k"), ("gfx12_operand16_32", "A of v_wmma, RDNA4", "m", "k")],
    [("gfx11_d_32", "D of v_wmma, RDNA3", "m", "n"), ("gfx12_d_32", "D of v_wmma, RDNA4", "m", "n")],
]


def fragments_of(path):
    """{name: (rows, columns, bits of the element's number, bits of the lane's)}, a bit being (rows, columns)."""
    with open(path, encoding="utf-8") as file:
        source = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)

    def bits(words):
        for word, number in re.findall(r"\b(R|C|SAME)\b(?:\((\d+)\))?", words):
            yield (int(number), 0) if word == "R" else (0, int(number)) if word == "C" else (0, 0)

    rows = re.findall(r"^FRAGMENT\((\w+), (\d+), (\d+),\s*BITS\((.*?)\),\s*BITS\((.*?)\),\s*(?:BITS|NONE)", source,
                      flags=re.M | re.S)
    return {name: (int(m), int(n), list(bits(element)), list(bits(lane))) for name, m, n, element, lane in rows}


def places(bits):
    """(row, column) that each number adds."""
    for number in range(1 << len(bits)):
        chosen = [bit for i, bit in enumerate(bits) if number >> i & 1]
        yield sum(row for row, _ in chosen), sum(column for _, column in chosen)


def colour_of(lane):
    red, green, blue = colorsys.hls_to_rgb(lane * 5 % 32 / 32, 0.82, 0.6)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def draw_fragment(x, y, fragment, title, down, across):
    rows, columns, element_bits, lane_bits = fragment
    holders = {}
    for lane, (row, column) in enumerate(places(lane_bits)):
        for element, (more_rows, more_columns) in enumerate(places(element_bits)):
            holders.setdefault((row + more_rows, column + more_columns), f"{lane}:{element}")
    width, height = CELL
    yield text(x, y + 16, title, more=' font-weight="bold"')
    yield text(x, y + 33, f"{down} ↓  {across} →   lane : element of it", "soft", more=' font-size="10.5"')
    yield '<g class="cells" font-size="10" text-anchor="middle">'
    for (row, column), words in sorted(holders.items()):
        left, top = x + column * width, y + HEAD + row * height
        lane = int(words.partition(":")[0])
        yield (f'<path d="M{left} {top}h{width}v{height}h-{width}z" fill="{colour_of(lane)}"/>'
               f'<text x="{left + width // 2}" y="{top + 12}">{words}</text>')
    yield "</g>"


def draw_lanes(path):
    fragments = fragments_of(path)
    parts, y, width = [], 12, 0
    for line in SHOWN:
        x = 16
        for name, title, down, across in line:
            parts += draw_fragment(x, y, fragments[name], title, down, across)
            x += fragments[name][1] * CELL[0] + 28
        width = max(width, x - 12)
        y += HEAD + max(fragments[name][0] for name, *_ in line) * CELL[1] + 14
    return picture(width, y, parts)


# ---- how fast what multiplies is -----------------------------------------------------------

NAMES, LONGEST, STEP, FIRST = 190, 400, 26, 58  # pixels


def speeds_of(path):
    """((what multiplies, for which target, element type, TFLOP/s)), and what is said of where and with what."""
    with open(path, encoding="utf-8") as file:
        before, _, behind = file.read().partition("](tutorial-wmma.svg)")
    where = re.findall(r"On an? ([^.]*), with matrices\s+of (\d+ x \d+) each", before)[-1]
    table = behind.split("\n\n")[1].splitlines()[2:]
    rows = [[cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in table]
    return [(name, target, elem, float(speed)) for name, target, elem, speed, *_ in rows], where


def draw_bars(rows, where):
    yield text(16, 22, f"TFLOP/s with matrices of {where[1]}", more=' font-weight="bold"')
    yield text(16, 40, f"one {where[0]}", "soft", more=' font-size="11"')
    most = max(speed for *_, speed in rows)
    for i, (name, target, elem, speed) in enumerate(rows):
        y, width = FIRST + i * STEP, max(1, speed / most * LONGEST)
        made = "" if target in name else f", {target}"
        yield text(NAMES - 10, y + 14, f"{name}{made}, {elem}", anchor="end")
        yield f'<rect class="box" x="{NAMES}" y="{y}" width="{width:.1f}" height="{STEP - 6}"/>'
        yield text(NAMES + width + 8, y + 14, f"{speed:g}")


def draw_speeds(path):
    rows, where = speeds_of(path)
    return picture(NAMES + LONGEST + 56, FIRST + len(rows) * STEP + 8, draw_bars(rows, where))


print("\n".join({"pipeline": draw_pipeline, "lanes": draw_lanes, "speeds": draw_speeds}[sys.argv[1]](sys.argv[2])))
