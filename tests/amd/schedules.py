"""Holds the count of registers by which schedules are refused to what LLVM needs.

    schedules.py FOLDER [--seed=N] [--count=N] [--jobs=N]

Draws schedules of every type, layout and wave, sizes that are not powers of two among them, and
compiles each one. Of those that are accepted few may spill, little, and only with a warning; those
that are refused for a few registers too many are compiled all the same, past choose-schedule: where
one does not spill, it must take most of the registers that there are.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import subprocess
import sys

import assembly

ALL = [("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("f16", "f16", "f16"), ("i8", "u8", "i32"),
       ("i4", "i4", "i32")]
#          target     registers of a SIMD  types
TARGETS = [("gfx1100", 1536, ALL + [("bf16", "bf16", "bf16")]),
           ("gfx1201", 1536, ALL + [("e4m3", "e5m2", "f32")]),
           ("gfx1102", 1024, ALL)]
BITS = {"f16": 16, "bf16": 16, "i8": 8, "e4m3": 8, "i4": 4}
LDS_BYTES = 65536

MOST_SPILLED = 40        # registers of one kernel
MOST_SPILLING = 0.05     # of the schedules that are accepted
CLOSE = 24               # registers too many with which a refused schedule is tried all the same
LEAST_REFUSED = 0.75     # of the registers that there are, which one that is refused and fits takes

Schedule = collections.namedtuple("Schedule", "target simd a b acc m n k waves wave along_m along_n")


def draw(pick):
    """A schedule that has whole blocks for all waves and fits LDS; a lane of which has about as many
    registers of results and of copies as it may have in all, or fewer."""
    while True:
        target, simd, types = pick.choice(TARGETS)
        a, b, acc = pick.choice(types)
        bits, wave = BITS[a], pick.choice((32, 32, 64))
        waves_m, waves_n = pick.choice((1, 2, 3, 4, 5, 8)), pick.choice((1, 2, 3, 4, 5, 8))
        m, n = 16 * waves_m * pick.randint(1, 8), 16 * waves_n * pick.randint(1, 8)
        k, waves = pick.choice((16, 32, 64, 128, 256)), waves_m * waves_n
        lanes = waves * wave
        groups = wave // 16 if target == "gfx1201" else 1
        copied = (m + n) * k * bits // 32 // lanes
        if max(m, n) <= 256 and lanes <= 1024 and k >= groups * 128 // bits \
                and 2 * (m + n) * k * bits // 8 + 4096 <= LDS_BYTES \
                and 90 <= m * n // lanes + copied <= 220:
            transposes = bits >= 8
            return Schedule(target, simd, a, b, acc, m, n, k, waves, wave,
                            transposes and pick.random() < 0.4, transposes and pick.random() < 0.4)


def text(s):
    a = ("K, M", "k, m") if s.along_m else ("M, K", "m, k")
    b = ("K, N", "k, n") if s.along_n else ("N, K", "n, k")
    return f"""kernel k(A: {s.a}[{a[0]}], B: {s.b}[{b[0]}], s: f32[N]) -> (C: f32[M, N])
{{
    acc[m, n] = sum:{s.acc}(k) A[{a[1]}] * B[{b[1]}];
    C[m, n]   = f32(acc[m, n]) + s[n];
}}
schedule k for {s.target} {{ tile m {s.m}, n {s.n}, k {s.k}; waves {s.waves}; wave {s.wave}; }}
"""


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", check=False)
    return done.returncode, done.stdout


def kernels_of(path):
    with open(path, encoding="utf-8") as file:
        return {name: {key: int(value) for key, value in fields.items() if value.isdigit()}
                for name, fields in assembly.read_metadata(file.read().split("\n")).items()}


def limit_of(s):
    """Registers of a lane, where all waves of a workgroup run at a time on four SIMDs."""
    of_simd = s.simd * 32 // s.wave
    piece = of_simd // 64
    return min(256, of_simd // -(-s.waves // 4) // piece * piece)


def compile_refused(s, path):
    """Assembly of the first variant, by the passes that come after choose-schedule."""
    bare = path + ".bare.tile"
    with open(bare, "w", encoding="utf-8") as file:
        file.write(text(s).split("schedule ")[0])
    _, times = run("tcc", bare, f"--target={s.target}", "--emit=tir", "-o", os.devnull,
                   "--time-passes")
    known = run("tcc-opt", "--list-passes")[1].split("\n")
    known = {line.split()[0] for line in known if line.strip()}
    passes = [word for line in times.split("\n") for word in line.split() if word in known]
    at = passes.index("choose-schedule")
    run("tcc", bare, f"--target={s.target}", "--emit=ir", "-o", path + ".ir")
    _, variants = run("tcc-opt", path + ".ir", "--passes=" + ",".join(passes[:at]))
    attributes = f"tile = [m, {s.m}, n, {s.n}, k, {s.k}], stages = 2, waves = {s.waves}, " \
                 f"wave = {s.wave}, group = 16"
    functions = re.split(r"(?m)^(?=func )", variants)
    kept = [f for f in functions if "assumes = [[align, " in f or not f.startswith("func ")]
    with open(path + ".tir", "w", encoding="utf-8") as file:
        file.write("".join(kept).replace("assumes = [[align, ", attributes + ", assumes = [[align, "))
    return run("tcc-opt", path + ".tir", "--passes=" + ",".join(passes[at + 1:]), "--emit=asm",
               "-o", path + ".s")


def check(s, path):
    """(what became of it, what is wrong or None)"""
    with open(path + ".tile", "w", encoding="utf-8") as file:
        file.write(text(s))
    failed, said = run("tcc", path + ".tile", f"--target={s.target}", "--emit=asm", "-o",
                       path + ".s")
    if not failed:
        for name, k in kernels_of(path + ".s").items():
            spilled = k["vgpr_spill_count"]
            if bool(spilled or k["private_segment_fixed_size"]) != (f"'{name}' spills" in said):
                return "accepted", f"{name} spills {spilled} registers, but: {said}"
            if spilled > MOST_SPILLED:
                return "spilling", f"{name} spills {spilled} registers"
        return "spilling" if "spills" in said else "accepted", None
    need = re.search(r"needs about (\d+) registers .* the limit is (\d+)", said)
    if not need:
        return "refused", None if "LDS" in said else said
    if int(need[2]) != limit_of(s):
        return "refused", f"the limit is {limit_of(s)}, but: {said}"
    if int(need[1]) - int(need[2]) > CLOSE:
        return "refused", None
    failed, said = compile_refused(s, path)
    if failed:
        return "tried", said
    k = kernels_of(path + ".s")["k"]
    if not k["vgpr_spill_count"] and k["vgpr_count"] < LEAST_REFUSED * limit_of(s):
        return "tried", f"refused for {need[1]} registers, but takes {k['vgpr_count']}"
    return "tried", None


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1], add_help=False)
    parser.add_argument("folder")
    for name, default in (("seed", 1), ("count", 100), ("jobs", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    o = parser.parse_args(arguments)
    pick, became, wrong = random.Random(o.seed), collections.Counter(), 0
    schedules = [draw(pick) for _ in range(o.count)]
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        paths = [os.path.join(o.folder, f"s{i}") for i in range(o.count)]
        for s, (what, problem) in zip(schedules, pool.map(check, schedules, paths)):
            became[what] += 1
            if problem:
                wrong += 1
                print(f"{tuple(s)}: {problem}\n{text(s)}")
    compiled = became["accepted"] + became["spilling"]
    print(", ".join(f"{n} {what}" for what, n in sorted(became.items())))
    if became["spilling"] > MOST_SPILLING * compiled:
        print(f"{became['spilling']} of {compiled} that are accepted spill")
        wrong += 1
    return bool(wrong)


sys.exit(main(sys.argv[1:]))
