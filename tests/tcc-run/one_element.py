"""Runs a kernel that writes an output without dimensions, and looks at its file: one_element.py PROGRAM.tile STEM

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import subprocess
import sys

import numpy as np

program, stem = sys.argv[1:]
np.save(f"{stem}.X.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
subprocess.run(["tcc-run", program, "--kernel", "total", "--size", "M=3,N=4", "--on=interp", "--input", f"X={stem}.X.npy",
                "--output", f"S={stem}.S.npy", "--check"], check=True)
total = np.load(f"{stem}.S.npy")
if total.shape != () or total != 66:
    sys.exit(f"{total!r} of shape {total.shape} is not 66")
