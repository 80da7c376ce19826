"""Checks the assembly of a product in every type and wave of RDNA, and of the examples on several
targets: kernels.py DIR EXAMPLE.tile…

No spills but of a few scalars, no scratch memory, no waterfall loops, all waits in place, and as
many v_wmma in the inner loop of the former as the schedule in force says: those of one wave's
blocks, for the two tiles of a iteration.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import re
import subprocess
import sys

import assembly
import isa

PROGRAM = """kernel k(A: {a}[M, K], B: {b}[{b_dims}], s: f32[N]) -> (C: f32[M, N])
{{
    acc[m, n] = sum:{acc}(k) A[m, k] * B[{b_map}];
    C[m, n]   = f32(acc[m, n]) * s[n];
}}
schedule k for {target} {{ wave {wave}; }}
"""
SIXTEEN = [("f16", "f16", "f32"), ("bf16", "bf16", "f32"),
           ("f16", "f16", "f16"), ("bf16", "bf16", "bf16")]
EIGHT = [("i8", "u8", "i32"), ("u8", "u8", "i32")]
FOUR = [("u4", "i4", "i32")]
FP8 = [("e4m3", "e5m2", "f32"), ("e5m2", "e5m2", "f32")]
#          target     types                          depth of an instruction, by bits
TARGETS = [("gfx1100", SIXTEEN + EIGHT + FOUR,       {16: 16, 8: 16, 4: 16}),
           ("gfx1150", SIXTEEN[:1],                  {16: 16}),
           ("gfx1201", SIXTEEN + EIGHT + FOUR + FP8, {16: 16, 8: 16, 4: 32})]


def bits(name):
    return int(re.search(r"\d+", {"e4m3": "8", "e5m2": "8"}.get(name, name))[0])


def products_in_loop(schedule, depth):
    """From what --print-schedule prints."""
    m, n, k = (int(re.search(rf"\b{x} (\d+)", schedule)[1]) for x in "mnk")
    waves, stages = (int(re.search(rf"{x} +(\d+)", schedule)[1]) for x in ("waves", "stages"))
    return m * n // 256 // waves * (k // depth) * stages


def run(*command):
    """(whether it failed, what it printed)"""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", check=False)
    return done.returncode != 0, done.stdout


# Scalars that are kept in lanes of a vector register, which costs an instruction each: of kernels with many dimensions.
MOST_SCALARS_SPILLED = 8


def is_little(problem):
    scalars = re.search(r"sgpr_spill_count is (\d+)", problem[1])
    return scalars and int(scalars[1]) <= MOST_SCALARS_SPILLED


def compile_and_check(program, target, path, *options, numbers=None):
    """What is wrong; numbers(schedule) has the limits of the kernel k."""
    failed, said = run("tcc", program, f"--target={target}", "--emit=asm", "-o", path,
                       "--print-schedule", *options)
    if failed:
        return said
    kernels = assembly.read(path)
    wrong = [problem for kernel in kernels for problem in isa.problems_of(kernel) if not is_little(problem)]
    if numbers:
        k = next(kernel for kernel in kernels if kernel.name == "k")
        wrong += isa.wrong_numbers(k, isa.parse_arguments([path, *numbers(said)]))
    return wrong


def check_product(folder, target, wave, types, transposed, depths, *options):
    path = os.path.join(folder, "_".join((target, str(wave), *types, "nt"[transposed])))
    layout = ("K, N", "k, n") if transposed else ("N, K", "n, k")
    with open(path + ".tile", "w", encoding="utf-8") as file:
        file.write(PROGRAM.format(a=types[0], b=types[1], acc=types[2], b_dims=layout[0],
                                  b_map=layout[1], target=target, wave=wave))
    return compile_and_check(path + ".tile", target, path + ".s", *options, numbers=lambda schedule: (
        f"--loop-wmma={products_in_loop(schedule, depths[bits(types[0])])}", "--max-lds-reads=1"))


def main(folder, *examples):
    wrong = []
    for target, all_types, depths in TARGETS:
        registers = set()
        for types in all_types:
            # Of types that take the same registers one has all tiles, with either layout in one kind of wave.
            takes = (bits(types[0]), bits(types[2]))
            is_first = takes not in registers
            registers.add(takes)
            for wave in (32, 64):
                for transposed in (False, True)[: 1 + (bits(types[0]) >= 8)]:
                    options = [] if is_first and transposed == (wave == 64) else ["--tiles=1"]
                    said = check_product(folder, target, wave, types, transposed, depths, *options)
                    wrong += [(target, wave, *types, transposed, said)] if said else []
        for example in examples if target != "gfx1150" else ():  # which has the code of gfx1100
            said = compile_and_check(example, target, os.path.join(folder, "example.s"))
            wrong += [(target, example, said)] if said else []
    for words in wrong:
        print(*words)
    return bool(wrong)


sys.exit(main(*sys.argv[1:]))
