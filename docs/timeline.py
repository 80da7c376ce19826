"""Draws a timeline that tcc-run has written: timeline.py TIMELINE.json > PICTURE.svg

One row for the copy engine, the tensor cores, each stage, and one warp of those that do the same.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import collections
import html
import json
import sys

LABEL, WIDTH, MARGIN = 150, 1000, 12  # pixels
ROW, GAP, AXIS, LEGEND = 24, 6, 28, 34

COLOURS = {
    "transfer": "#4e79a7",
    "fill": "#a0cbe8",
    "mma": "#59a14f",
    "other mma": "#8cd17d",
    "use": "#59a14f",
    "prologue": "#f1ce63",
    "main loop": "#e6e6e6",
    "epilogue": "#e9a2a8",
    "wait": "#9c9c9c",
    "wait for a stage": "#d1605e",
}
STYLE = """
.back { fill: #ffffff } .text { fill: #24292f } .soft { fill: #57606a } .grid { stroke: #d8dee4 } .inside { fill: #24292f }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117 } .text { fill: #e6edf3 } .soft { fill: #9da7b3 } .grid { stroke: #30363d }
}
"""
LEGENDS = [
    ("transfer", "transfer"),
    ("fill", "stage being filled"),
    ("mma", "MMA, stage in use"),
    ("other mma", "of another warpgroup"),
    ("wait for a stage", "wait for a stage"),
    ("wait", "another wait"),
    ("prologue", "prologue"),
    ("main loop", "main loop"),
    ("epilogue", "epilogue"),
]


def rows_of(trace):
    """Names of the tracks in their order, and their slices; of warps that do the same, the first."""
    names, order, slices = {}, {}, collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event.get("name") == "thread_name":
            names[event["tid"]] = event["args"]["name"]
        elif event.get("name") == "thread_sort_index":
            order[event["tid"]] = event["args"]["sort_index"]
        elif event["ph"] == "X":
            slices[event["tid"]].append(event)
    seen = set()
    for track in sorted(names, key=order.get):
        name = names[track]
        if "barrier" in name:
            continue
        if name.startswith("warp"):
            warp, _, role = name.partition(": ")
            group = int(warp.split()[1]) // 4 if role == "consumer" else role
            if not role or group in seen:
                continue
            seen.add(group)
        yield name, slices[track]


def colour_of(event):
    kind = event["cat"]
    if kind == "part":
        return COLOURS[event["name"]]
    if kind == "mma" and not event["name"].startswith("warpgroup 0"):
        return COLOURS["other mma"]
    if kind == "wait" and "stage" in event["args"]:
        return COLOURS["wait for a stage"]
    return COLOURS[kind]


def rectangle(x, y, width, height, colour, title):
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{max(width, 0.5):.1f}" height="{height}" '
        f'fill="{colour}"><title>{html.escape(title)}</title></rect>'
    )


def text(x, y, words, style="text", anchor="start"):
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def draw_row(y, name, slices, scale):
    yield text(MARGIN, y + ROW / 2 + 4, name)
    for event in slices:
        x = LABEL + event["ts"] * scale
        width = event["dur"] * scale
        title = f'{event["name"]}: cycle {event["ts"]}, {event["dur"]} cycles'
        inner = 6 if event["cat"] == "wait" else 0
        yield rectangle(x, y + inner, width, ROW - 2 * inner, colour_of(event), title)
        if event["cat"] in ("fill", "use") and width > 7 * len(event["name"]):
            yield text(x + width / 2, y + ROW / 2 + 4, event["name"], "inside", "middle")


def draw_axis(y, cycles, scale):
    step = next(s for s in (100, 200, 500, 1000, 2000, 5000, 10**4, 10**5, 10**6) if cycles / s <= 16)
    for at in range(0, cycles + 1, step):
        x = LABEL + at * scale
        yield f'<line class="grid" x1="{x:.1f}" y1="{MARGIN}" x2="{x:.1f}" y2="{y}"/>'
        yield text(x, y + 15, str(at), "soft", "middle")


def draw_legend(y):
    x = MARGIN
    for kind, words in LEGENDS:
        yield rectangle(x, y, 14, 14, COLOURS[kind], words)
        yield text(x + 19, y + 11, words)
        x += 36 + 6.4 * len(words)


def draw(trace):
    rows = list(rows_of(trace))
    cycles = trace["otherData"]["cycles"]
    scale = WIDTH / cycles
    bottom = MARGIN + len(rows) * (ROW + GAP)
    width, height = LABEL + WIDTH + 2 * MARGIN, bottom + AXIS + LEGEND
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">'
    )
    yield f'<style>{STYLE}</style><rect class="back" width="{width}" height="{height}" rx="6"/>'
    yield from draw_axis(bottom, cycles, scale)
    for i, (name, slices) in enumerate(rows):
        yield from draw_row(MARGIN + i * (ROW + GAP), name, slices, scale)
    yield from draw_legend(bottom + AXIS)
    yield "</svg>"


with open(sys.argv[1], encoding="utf-8") as file:
    print("\n".join(draw(json.load(file))))
