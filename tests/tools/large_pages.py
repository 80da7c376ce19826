"""large_pages.py TCC: whether a tcc that reads standard input has asked for large pages for its heap (proc(5), smaps).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import re
import subprocess
import sys
import time

LEAST_KB = 28 << 10
DEADLINE_S = 60


def advised_kb(pid):
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as smaps:
        mappings = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", smaps.read(), flags=re.M)
    return sum(int(re.search(r"^Size: *(\d+) kB", m, re.M)[1]) for m in mappings
               if "[heap]" in m and re.search(r"^VmFlags:.* hg\b", m, re.M))


with subprocess.Popen([sys.argv[1], "-", "--emit=ir", "-o", "-"], stdin=subprocess.PIPE,
                      stdout=subprocess.DEVNULL) as tcc:
    deadline = time.monotonic() + DEADLINE_S
    while (kb := advised_kb(tcc.pid)) < LEAST_KB and time.monotonic() < deadline:
        time.sleep(0.01)
    tcc.communicate(b"kernel k(A: f16[M]) -> (C: f16[M]) { C[m] = A[m]; }")
if kb < LEAST_KB or tcc.returncode:
    sys.exit(f"{kb} KB of the heap may be in large pages; tcc ended with {tcc.returncode}")
