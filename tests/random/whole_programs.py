"""Draws programs of the whole language, and compares what the interpreter makes of the emitted code with what numpy
computes of the program: whole_programs.py BIN TARGET FIRST END [FOLDER] [--check-passes]

BIN             the folder of tcc and tcc-run
FIRST, END      of the seeds, each a program
FOLDER          where programs that fail stay, with their data; default .
--check-passes  lets tcc compare what programs compute before and after each pass instead

A result is right or wrong, to the bit. Prints each program that fails or is refused, and how many do.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.dont_write_bytecode = True
from drawn_program import INTS, Program  # noqa: E402

SECONDS = 120  # that a program may take


def types_of(target):
    """Of those that not all targets have."""
    sm = re.match(r"sm_(\d+)", target)
    return [] if not sm else ["f64", "tf32"] if int(sm[1]) >= 80 else ["f64"]


def load(path, element):
    data = np.load(path)
    bits = data.view(np.uint8).astype(np.uint32).reshape(-1) if element in ("e4m3", "e5m2") else data
    if element == "bf16":
        data = (data.astype(np.uint32).reshape(-1) << 16).view(np.float32).reshape(data.shape)
    if element == "e5m2":
        data = (bits << 8).astype(np.uint16).view(np.float16).reshape(data.shape)
    if element == "e4m3":
        exponent, fraction = bits >> 3 & 15, bits & 7
        size = np.where(exponent == 0, fraction / 512, (8 + fraction) * 2.0 ** (exponent - 10.0))
        data = (size * np.where(bits & 128, -1, 1)).reshape(data.shape)
    return data.astype(np.float64)


def command_of(program, folder, bin, target, seed):
    command = [f"{bin}/tcc-run", "f.tile", "--target", target, "--on=interp", "--check", f"--order=random:{seed}"]
    sizes = program.extents()
    if sizes:
        command += ["--size", ",".join(f"{d}={n}" for d, n in sizes.items())]
    for name, t in program.tensors.items():
        if t["dims"]:
            np.save(folder / f"{name}.npy", t["data"].astype(np.int32 if t["element"] in INTS else np.float32))
            command += ["--input", f"{name}={name}.npy"]
        else:
            command += ["--set", f"{name}={int(t['data'])}"]
    for name in program.outputs:
        command += ["--output", f"{name}={name}.npy"]
    return command


def wrong_results(program, folder):
    for name, (element, _, _) in program.outputs.items():
        got, want = load(folder / f"{name}.npy", element), program.expected(name)
        if got.shape != want.shape:
            return f"{name} has shape {got.shape}, not {want.shape}"
        if not np.array_equal(got, want):
            at = tuple(int(i) for i in np.argwhere(got != want)[0])
            return f"{name}{list(at)} is {got[at]}, not {want[at]}; {np.sum(got != want)} of {got.size} are wrong"
    return None


def run(program, folder, bin, target, seed, check_passes):
    """What is wrong, and whether the program was refused; None: nothing is."""
    (folder / "f.tile").write_text(program.text())
    if check_passes:
        command = [f"{bin}/tcc", "f.tile", "--target", target, f"--check-passes={seed}", "--emit=tir", "-o", "out"]
    else:
        command = command_of(program, folder, bin, target, seed)
    (folder / "command").write_text(" ".join(command) + "\n")
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"takes more than {SECONDS} seconds", False
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip() or f"ended with {done.returncode}"
        return said[-2000:], "f.tile:" in said and "error:" in said and "this is a bug" not in said
    wrong = None if check_passes else wrong_results(program, folder)
    return (wrong, False) if wrong else None


def main():
    check_passes = "--check-passes" in sys.argv
    args = [a for a in sys.argv[1:] if a != "--check-passes"]
    bin, target, first, end = pathlib.Path(args[0]).resolve(), args[1], int(args[2]), int(args[3])
    out = pathlib.Path(args[4] if len(args) > 4 else ".")
    failed = refused = 0
    for seed in range(first, end):
        program = Program(seed, types_of(target))
        program.draw()
        with tempfile.TemporaryDirectory() as folder:
            wrong = run(program, pathlib.Path(folder), bin, target, seed, check_passes)
            if wrong is None:
                continue
            failed += 1
            refused += wrong[1]
            kept = out / f"whole-{target}-{seed}"
            kept.mkdir(parents=True, exist_ok=True)
            for file in pathlib.Path(folder).iterdir():
                (kept / file.name).write_bytes(file.read_bytes())
            print(f"program {seed} for {target}: {wrong[0]}\n{(kept / 'f.tile').read_text()}", flush=True)
    print(f"{target}: {end - first - failed} of {end - first} programs are right; {refused} are refused")
    return failed > 0


sys.exit(main())
