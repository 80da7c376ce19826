"""Holds the manifest at the head of a PTX file against docs/abi.md and against the PTX behind it:
check_manifest.py FILE.ptx FILE.json

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import functools
import itertools
import json
import math
import re
import sys

ELEM_BYTES = {"f16": 2, "bf16": 2, "f32": 4}
SMEM_LIMIT = 232448


def comments(ptx):
    lines = ptx.split("\n")
    assert lines[0] == "// tcc-manifest 2", lines[0]
    text = ""
    for line in lines[1:]:
        if not line.startswith("//! "):
            return text
        text += line[4:]


def entries(ptx):
    """name -> (parameter types, threads of a block)"""
    found = {}
    for m in re.finditer(r"\.visible \.entry (\w+)\((.*?)\)\s*(.*?)\{", ptx, re.S):
        types = []
        for line in m[2].split("\n"):
            if ".param" in line:
                types.append("map" if re.search(r"\.b8 \w+\[128\]", line)
                             else re.search(r"\.param (?:\.align \d+ )?\.(\w+)", line)[1])
        found[m[1]] = types, int(re.search(r"\.(?:reqntid|maxntid) (\d+)", m[3])[1])
    return found


def factors_of(extents):
    """The names and numbers that extents are products of: B.M is B * M."""
    return [f for e in extents for f in str(e).split(".")]


def check_map(recipe, kernel):
    arg = next((a for a in kernel["args"] if a["name"] == recipe.get("arg")), recipe)
    assert recipe["type"] == arg["type"]
    own = factors_of(recipe["dims"])
    assert arg is recipe or sorted(own) == sorted(map(str, arg["dims"])), recipe
    rank = len(recipe["dims"])
    assert 1 <= rank <= 5 and len(recipe["box"]) == rank and len(recipe["strides"]) == rank - 1
    for i, stride in enumerate(recipe["strides"]):
        factors = [f[1] if isinstance(f, list) else f for f in stride] # padded rows are rounded up
        assert sorted(factors_of(factors)) == sorted(factors_of(recipe["dims"][: i + 1])), recipe
    assert all(1 <= b <= 256 for b in recipe["box"]), recipe
    row = recipe["box"][0] * ELEM_BYTES[arg["type"]]
    assert row % 16 == 0 and recipe["swizzle"] in (0, 32, 64, 128)
    assert row == recipe["swizzle"] or (recipe["swizzle"] == 0 and row == 16), recipe


OPERATIONS = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
              "div": lambda a, b: a // b, "ceildiv": lambda a, b: -(-a // b),
              "roundup": lambda a, b: -(-a // b) * b, "min": min, "max": max}


def value(expr, dims):
    if isinstance(expr, list):
        operands = [value(e, dims) for e in expr[1:]]
        return functools.reduce(OPERATIONS[expr[0]], operands)
    if isinstance(expr, dict):
        return {"sms": 132}[expr["device"]]
    return math.prod(int(f) if f.isdigit() else dims[f] for f in str(expr).split("."))


def check_order(variants, dims):
    """Whatever the extents, copying operands element by element is the last resort, and a variant that needs
    more of its other tensors costs no more than one that needs less, of the same tile."""
    for sizes in itertools.product((1, 8, 64, 200, 4096), repeat=min(len(dims), 4)):
        extents = dict.fromkeys(dims, 8) | dict(zip(dims, sizes))
        costs = [value(v["cost"], extents) for v in variants]
        assert len(costs) == 1 or costs[-1] >= max(costs[:-1]), (extents, costs)
        cost = {v["name"]: c for v, c in zip(variants, costs)}
        for name in cost:
            assert cost[name] <= cost.get(name + "__direct", cost[name]), (extents, cost)


def check_entry(v, requires, kernel, ptx_entries):
    types, threads = ptx_entries[v["launch"]]
    names = {a["name"]: a for a in kernel["args"]}
    dims = set(kernel["dims"])
    assert v["block"] == threads and threads % 32 == 0 and threads <= 1024
    assert 0 <= v["smem_bytes"] <= SMEM_LIMIT, v["smem_bytes"]
    assert len(v["params"]) == len(types)
    for param, ptx_type in zip(v["params"], types):
        kind = next(iter(param))
        if kind == "tensor_map":
            assert ptx_type == "map"
            check_map(param[kind], kernel)
        elif kind == "pointer":
            assert ptx_type in ("u64", "b64") and names[param[kind]]["role"] != "scalar"
        elif kind == "workspace":
            assert ptx_type in ("u64", "b64") and value(param[kind], dict.fromkeys(dims, 1)) % 256 == 0
        elif kind == "dim":
            assert ptx_type in ("u32", "b32") and dims.issuperset(factors_of([param[kind]]))
        else:
            assert kind == "scalar" and names[param[kind]]["role"] == "scalar"
            assert ptx_type in ("f32", "b32")
    assert value(v["grid"], dict.fromkeys(dims, 1)) >= 1
    for r in requires:
        if "arg" in r:
            assert r["arg"] in names
        elif "dim" in r:
            assert r["dim"] in dims
        else:
            assert r["bytes_per_elem"] in (2, 4) and all(d in dims or d >= 1 for d in r["pitch"])
    # What TMA copies is aligned.
    aligned = {r["arg"] for r in requires if r.get("align", 0) >= 16 and "arg" in r}
    assert {p["tensor_map"]["arg"] for p in v["params"] if "arg" in p.get("tensor_map", {})} <= aligned


def main(ptx_file, json_file):
    with open(ptx_file, encoding="utf-8") as file:
        ptx = file.read()
    with open(json_file, encoding="utf-8") as file:
        text = file.read()
    assert comments(ptx) + "\n" == text
    manifest = json.loads(text)
    left = entries(ptx)
    assert f".target {manifest['target']}" in ptx
    for kernel in manifest["kernels"]:
        assert {a["role"] for a in kernel["args"]} <= {"in", "out", "inout", "scalar"}
        assert kernel["reference"].startswith(f"func @{kernel['name']}(")
        variants = kernel["variants"]
        assert variants[0]["name"] == kernel["name"]
        check_order(variants, kernel["dims"])
        assert variants[-1]["requires"] == [], "the last variant takes anything"
        for v in variants:
            launches = [s["launch"] for s in v["steps"]]
            assert v["name"] in launches and (v["workspace_bytes"] == 0) == (len(launches) == 1)
            for step in v["steps"]:
                check_entry(step, v["requires"], kernel, left)
        for arg in kernel["args"]:
            for indices in arg.get("indices", []):
                assert len(indices) == len(arg["dims"]), arg
    launched = {s["launch"] for k in manifest["kernels"] for v in k["variants"] for s in v["steps"]}
    assert set(left) == launched, f"entries without a variant: {set(left) - launched}"


main(*sys.argv[1:])
