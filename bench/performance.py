"""Draws docs/performance.svg and writes what README.md and docs/performance.md say of speed:
performance.py [--check | RESULTS.json]

The figures are those of bench/results, which tcc-bench has written, a file for each GPU; RESULTS.json, newer ones
of one, is copied there first. The front page and the picture are of FIRST. Documents have them between `<!-- speed -->` and `<!-- end of speed -->`. With --check
nothing is written, and what is not up to date is an error.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import glob
import json
import math
import os
import re
import statistics
import sys
import textwrap
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS, FIRST, PICTURE = "bench/results", "h200", "docs/performance.svg"
PAGE, FRONT = "docs/performance.md", "README.md"
RENEW = "python3 bench/performance.py"
BEHIND = 0.97  # from here on down a loss is named
BEGIN, END = "<!-- speed -->\n", "<!-- end of speed -->\n"
BESIDE = "<!-- of bench/pytorch.py -->\n", "<!-- end of bench/pytorch.py -->\n"  # a table that another program prints


@dataclass
class Row:
    kernel: str
    m: int
    n: int
    k: int
    variant: str
    us: float
    tflops: float
    default: float  # ratio of our speed to cuBLASLt's
    best: float
    lt: tuple  # its default pick's and its best's TFLOP/s

    @property
    def shape(self):
        return f"{self.m} x {self.n} x {self.k}"

    @property
    def name(self):
        return f"{self.kernel} {self.shape}"

    @property
    def aligned(self):
        """Whether rows of 2-byte elements begin at multiples of 16 bytes, as TMA needs it."""
        return self.k % 8 == 0 and self.n % 8 == 0


def tile_of(kernel, variant):
    """What a variant's name says of its tile: `f__64x16_swapped` is `64 x 16, swapped`."""
    words = re.split(r"_+", variant.removeprefix(kernel).strip("_"))
    words = [re.sub(r"^(\d+)x(\d+)$", r"\1 x \2", re.sub(r"^([a-z]+)(\d+)$", r"\1 \2", w)) for w in words if w]
    return ", ".join(words) or "the first"


def gpu_of(results):
    """`NVIDIA H100 80GB HBM3, driver 13.0` is `h100`."""
    return results["device"].split()[1].strip(",").lower()


def rows_of(results):
    for r in results["results"]:
        size = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", r["sizes"])}
        lt = (r["cublaslt_default_tflops"], r["cublaslt_best_tflops"])
        if r.get("error") or None in lt:
            sys.exit(f"{RESULTS}: {results['device']}: {r['kernel']} {r['sizes']} has no result")
        yield Row(r["kernel"], size["M"], size["N"], size["K"], tile_of(r["kernel"], r["variant"]), r["us"],
                  r["tflops"], r["tflops"] / lt[0], r["tflops"] / lt[1], lt)


def mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


# ---- words ---------------------------------------------------------------------------------


def summary(results, rows):
    """The sentences that both documents have."""
    device = results["device"].replace(", driver", " (CUDA driver") + ")"
    odd = [r for r in rows if not r.aligned]
    even = [r for r in rows if r.aligned]
    behind = [r for r in rows if r.best < BEHIND]
    words = (f"Over {len(rows)} shapes of f16 and bf16 products on an {device}, {results['date']}, the geometric mean "
             f"of tcc's speed relative to cuBLASLt's is **{mean(r.best for r in rows):.3f}** against the fastest "
             f"algorithm that cuBLASLt offers and **{mean(r.default for r in rows):.3f}** against its default choice.")
    if odd:
        names = ", ".join(f"{r.shape} ({r.best:.2f})" for r in odd)
        words += (f" Without {names}, whose rows are not aligned, the means are {mean(r.best for r in even):.3f} and "
                  f"{mean(r.default for r in even):.3f}.")
    if behind:
        worst = min(behind, key=lambda r: r.best)
        words += (f" tcc is more than 3 % slower on {len(behind)} of the shapes; the worst is {worst.shape} "
                  f"({worst.best:.2f}).")
    return textwrap.wrap(words, 116)


def table(rows):
    yield "| kernel | M x N x K | variant | time | TFLOP/s | cuBLASLt default / best | ratio |"
    yield "|---|---|---|--:|--:|--:|--:|"
    for r in rows:
        ratio = f"{r.default:.3f} / {r.best:.3f}"
        if r.best < BEHIND:
            ratio = f"{r.default:.3f} / **{r.best:.3f}**"
        yield (f"| {r.kernel} | {r.shape} | {r.variant} | {r.us:.2f} us | {r.tflops:.1f} "
               f"| {r.lt[0]:.1f} / {r.lt[1]:.1f} | {ratio} |")


def losses(rows):
    behind = sorted((r for r in rows if r.best < BEHIND), key=lambda r: r.best)
    names = ", ".join(f"{r.name} ({r.best:.3f})" for r in behind)
    return textwrap.wrap(f"More than 3 % slower, worst first: {names or 'none'}.", 116)


def of_device(results, rows):
    yield from table(rows)
    yield ""
    yield from losses(rows)
    yield ""
    yield "```"
    yield results["command"]
    yield "```"


def page(first, others):
    yield from summary(*first)
    yield ""
    yield "![Speed relative to cuBLASLt's best algorithm, per shape](performance.svg)"
    yield ""
    yield from of_device(*first)
    for results, rows in others:
        yield ""
        yield f"## {gpu_of(results).upper()}"
        yield from summary(results, rows)
        yield ""
        yield from of_device(results, rows)


def front(first, others):
    yield "![Speed relative to cuBLASLt's best algorithm, per shape](docs/performance.svg)"
    yield ""
    yield from summary(*first)
    for results, rows in others:
        yield (f"[On an {gpu_of(results).upper()}](docs/performance.md#{gpu_of(results)}) the means are "
               f"{mean(r.best for r in rows):.3f} and {mean(r.default for r in rows):.3f}.")


# ---- the picture ---------------------------------------------------------------------------

LABEL, VALUE, WIDTH, ROW, TOP, BOTTOM = 230, 64, 560, 19, 76, 30  # pixels
LEAST, MOST = 0.8, 1.2  # of the axis

STYLE = """
.back { fill: #ffffff } .text { fill: #24292f } .soft { fill: #57606a } .grid { stroke: #d8dee4 } .one { stroke: #24292f }
.won { fill: #3b7dd8 } .lost { fill: #d9622b } .bad { fill: #a83a0c; font-weight: bold } .pick { fill: none; stroke: #24292f }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117 } .text { fill: #e6edf3 } .soft { fill: #9da7b3 } .grid { stroke: #30363d } .one { stroke: #e6edf3 }
.won { fill: #5b9bf0 } .lost { fill: #f0834d } .bad { fill: #ffa075 } .pick { stroke: #e6edf3 }
}
"""


def x_of(ratio):
    return LABEL + WIDTH * (min(max(ratio, LEAST), MOST) - LEAST) / (MOST - LEAST)


def text(x, y, words, style="text", anchor="start"):
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def draw_axis(height):
    for step in range(round(LEAST * 20), round(MOST * 20) + 1):
        ratio = step / 20
        x = x_of(ratio)
        yield (f'<line class="{"one" if ratio == 1 else "grid"}" x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" '
               f'y2="{height - BOTTOM}"/>')
        yield text(x, height - BOTTOM + 16, f"{ratio:.2f}", "soft", "middle")


def draw_row(y, row):
    style = "won" if row.best >= 1 else "lost"
    one, end = x_of(1), x_of(row.best)
    left, width = min(one, end), max(abs(end - one), 1)
    yield text(LABEL - 10, y + 13, row.name, "bad" if row.best < 0.97 else "text", "end")
    yield (f'<rect class="{style}" x="{left:.1f}" y="{y + 3}" width="{width:.1f}" height="{ROW - 6}">'
           f"<title>{row.name}: {row.best:.3f} of cuBLASLt's best, {row.default:.3f} of its pick</title></rect>")
    if row.best > MOST:  # a break in the bar
        yield f'<path class="back" d="M{end - 16:.1f} {y + ROW - 2} l6 {4 - ROW} h4 l-6 {ROW - 4} z"/>'
    yield f'<circle class="pick" cx="{x_of(row.default):.1f}" cy="{y + ROW / 2}" r="3"/>'
    yield text(LABEL + WIDTH + 14, y + 13, f"{row.best:.3f}", "bad" if row.best < 0.97 else "text")


def draw(results, rows):
    width, height = LABEL + WIDTH + VALUE, TOP + ROW * len(rows) + BOTTOM
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" font-family="sans-serif" font-size="12">')
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="back" width="{width}" height="{height}" rx="6"/>'
    yield text(16, 24, "Speed of tcc relative to cuBLASLt's best algorithm (M x N x K)")
    yield text(16, 42, f"{results['device']}, {results['date']}; circles: relative to its default choice", "soft")
    yield text(x_of(1) - 10, 63, "slower", "soft", "end")
    yield text(x_of(1) + 10, 63, "faster", "soft")
    yield from draw_axis(height)
    for i, row in enumerate(sorted(rows, key=lambda r: -r.best)):
        yield from draw_row(TOP + ROW * i, row)
    yield "</svg>"


# ---- files ---------------------------------------------------------------------------------


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def with_part(path, lines):
    """A document with other lines between its marks."""
    before, mark, rest = read(path).partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        sys.exit(f"{path}: error: has no {BEGIN.strip()} … {END.strip()}")
    return before + mark + "\n".join(lines) + "\n" + end + after


def stray_figures(path):
    """Ratios in a document that are not between its marks, where nothing renews them."""
    renewed = f"{BEGIN}.*?{END}|{BESIDE[0]}.*?{BESIDE[1]}|^```.*?^```$"
    document = re.sub(renewed, "", read(path), flags=re.M | re.S)
    return re.findall(r"(?<!glibc )(?<![\d.])[0-9]\.\d\d+(?![\d.])", document)


def main(arguments):
    check = arguments == ["--check"]
    if arguments and not check:
        with open(arguments[0], encoding="utf-8") as file:
            newer = file.read()
        with open(os.path.join(ROOT, RESULTS, gpu_of(json.loads(newer)) + ".json"), "w", encoding="utf-8") as out:
            out.write(newer)
    kept = {}
    for path in sorted(glob.glob(os.path.join(ROOT, RESULTS, "*.json"))):
        results = json.loads(read(path))
        kept[gpu_of(results)] = results, list(rows_of(results))
    first = kept.pop(FIRST)
    files = {
        PICTURE: "\n".join(draw(*first)) + "\n",
        PAGE: with_part(PAGE, page(first, kept.values())),
        FRONT: with_part(FRONT, front(first, kept.values())),
    }
    failed = False
    for path, content in files.items():
        if not check:
            with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
                file.write(content)
        elif not os.path.exists(os.path.join(ROOT, path)) or read(path) != content:
            print(f"{path}: error: is not what {RESULTS} gives; `{RENEW}` renews it")
            failed = True
    for path in (PAGE, FRONT):
        for figure in stray_figures(path):
            print(f"{path}: error: {figure} stands where nothing renews it; `{RENEW}` writes between the marks")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
