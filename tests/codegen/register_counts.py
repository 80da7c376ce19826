"""Writes register tuples of AMD's assembly as how many registers they are: v[8:15] becomes v*8, v3 v*1.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import re
import sys

for line in sys.stdin:
    line = re.sub(r"\bv\[(\d+):(\d+)\]", lambda m: f"v*{int(m[2]) - int(m[1]) + 1}", line)
    sys.stdout.write(re.sub(r"\bv\d+\b", "v*1", line))
