"""Rows of streaming.tile whose maxima come late or are infinite, against numpy: streaming.py PROGRAM.tile STEM

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import subprocess
import sys

import numpy as np

program, stem = sys.argv[1:]
N = 700
rows = np.random.default_rng(3).normal(size=(9, N)).astype(np.float32)
rows[1] = np.sort(rows[1]) * 200  # each tile has a new maximum, far above the last one
rows[2] = -np.sort(-rows[2]) * 200
rows[3, : N // 2] = -np.inf  # whole tiles without a number
rows[4, N // 2 :] = -np.inf
rows[5, ::2] = -np.inf
rows[6] = -3e38
rows[7] = 3e38
rows[8] = np.where(np.arange(N) == N - 1, 88, -1e30)
top = rows.astype(np.float64).max(axis=1, keepdims=True)
expected = np.log(np.exp(rows.astype(np.float64) - top).sum(axis=1)) + top[:, 0]

np.save(f"{stem}.X.npy", rows)
for target in ["sm_90a", "sm_75", "gfx1100", "gfx1201"]:
    subprocess.run(
        ["tcc-run", program, "--kernel=log_sum_exp", f"--target={target}", "--on=interp", "--size", f"M={len(rows)},N={N}",
         "--input", f"X={stem}.X.npy", "--output", f"L={stem}.L.npy"], check=True, stdout=subprocess.DEVNULL)
    found = np.load(f"{stem}.L.npy")
    if not np.allclose(found, expected, rtol=1e-6, atol=1e-5):
        sys.exit(f"{target}: L is\n{found}\nand not\n{expected}")
