"""Checks a timeline and the table of costs: timeline.py TIMELINE.json COST.def DOCUMENT.md

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import collections
import json
import re
import sys


def costs_of(path):
    """(name, value, unit, what, source) of every row of cost.def."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    row = r'^TCC_COST\((\w+), (\d+), "([^"]*)",\s*((?:"[^"]*"\s*)+),\s*"([^"]*)"\)'
    for name, value, unit, what, source in re.findall(row, text, flags=re.M):
        yield name, int(value), unit, "".join(re.findall(r'"([^"]*)"', what)), source


def check_table(costs, path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for name, value, unit, what, source in costs:
        row = f"| `{name}` | {value} {unit} | {what} | {source} |"
        assert row in lines, f"{path} lacks the row\n{row}"


def check_nesting(slices):
    """Slices of a track lie within each other or apart."""
    around = []
    for event in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
        while around and around[-1] <= event["ts"]:
            around.pop()
        end = event["ts"] + event["dur"]
        assert event["dur"] > 0 and (not around or end <= around[-1]), event
        around.append(end)


def check_in_flight(events):
    """What is in flight begins and ends once."""
    begins = {e["id"]: e["ts"] for e in events if e["ph"] == "b"}
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "e"}
    assert begins and begins.keys() == ends.keys()
    assert all(begins[i] < ends[i] for i in begins)


def main(trace_path, cost_path, document):
    costs = list(costs_of(cost_path))
    check_table(costs, document)
    with open(trace_path, encoding="utf-8") as file:
        trace = json.load(file)
    events, cycles = trace["traceEvents"], trace["otherData"]["cycles"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[names[event["tid"]]].append(event)
            assert event["ts"] + event["dur"] <= cycles, event
    for slices in tracks.values():
        check_nesting(slices)
    check_in_flight(events)
    value = {name: value for name, value, *_ in costs}
    products = tracks["tensor cores"]
    iterations, groups, depth, n = 512 // 64, 2, 64 // 16, 256
    assert len(products) == iterations * groups * depth
    assert sum(e["dur"] for e in products) == len(products) * 64 * n * 16 // value["tensor_fmas"]
    stages = [track for track in tracks if re.fullmatch(r"stage \d", track)]
    assert len(stages) == 4
    assert sum(len(tracks[stage]) for stage in stages) == 2 * iterations
    assert {e["name"] for e in tracks["warp 0: consumer"]} >= {"prologue", "main loop", "epilogue"}
    assert all("line" in e["args"] for track in stages for e in tracks[track])


main(*sys.argv[1:])
