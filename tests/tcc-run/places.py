"""Runs argmax and argmin over equal numbers, infinities, NaNs, and of nothing: places.py PROGRAM.tile STEM

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import subprocess
import sys

import numpy as np

program, stem = sys.argv[1:]
inf, nan = np.inf, np.nan
ROWS = [  # what is in a row, where its greatest and its least number are
    ([1, 3, 2, 3], 1, 0),
    ([-inf, -inf, -inf, -inf], 0, 0),
    ([inf, 1, inf, -inf], 0, 3),
    ([nan, 1, nan, 1], 1, 1),
    ([nan, -inf, nan, inf], 3, 1),
    ([nan, nan, nan, nan], -1, -1),
    ([-0.0, 0.0, -0.0, 0.0], 0, 0),
]


def run(target, rows):
    np.save(f"{stem}.X.npy", rows)
    subprocess.run(["tcc-run", program, "--kernel", "rows", "--target", target, "--on=interp", "--size",
                    f"M={len(rows)},N={rows.shape[1]}", "--input", f"X={stem}.X.npy", "--output", f"most={stem}.most.npy",
                    "--output", f"least={stem}.least.npy", "--check"], check=True)
    return np.load(f"{stem}.most.npy").tolist(), np.load(f"{stem}.least.npy").tolist()


for target in ("sm_90a", "sm_75", "gfx1100"):
    rows = np.array([row for row, _, _ in ROWS], np.float32)
    found, expected = run(target, rows), ([most for _, most, _ in ROWS], [least for _, _, least in ROWS])
    if found != expected:
        sys.exit(f"{target}: {found} is not {expected}")
    rows = np.tile(rows, 10)  # which warps hold
    if run(target, rows) != expected:
        sys.exit(f"{target}: found something else in long rows")
    if run(target, np.zeros((3, 0), np.float32)) != ([-1] * 3, [-1] * 3):
        sys.exit(f"{target}: found something in nothing")
