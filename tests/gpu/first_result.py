#!/usr/bin/env python3
"""How long the first result of a process takes, from Python, and what of that is whose.

    tests/gpu/first_result.py [--processes=N] [--cpu] [WHEEL]

WHEEL is what `./dev wheel` makes; without it `tcc` is imported from where Python finds it. Needs numpy, and NVIDIA's
driver. Every number is the median over N processes, 15 unless it is said, each of which imports tcc, has the driver
initialized and a context made, as torch would have done it, and then compiles a kernel and calls it: with empty
caches, with what tcc keeps on disk, and with machine code there as well, where ptxas is found. Python's own start and
numpy are not counted.

--cpu  processor time instead of the clock's, for machines that others use

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import compileall
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import zipfile

GOALS_MS = {"import": {"import tcc": 40}, "empty caches": {"in all": 700}, "from disk": {"jit and first call": 30}}

PROGRAM = """
import sys, time
clock = time.process_time if "--cpu" in sys.argv else time.perf_counter
took = {}
last = clock()

def mark(name):
    global last
    now = clock()
    took[name], last = 1000 * (now - last), now

import tcc
mark("import tcc")
import ctypes, json, numpy
last = clock()
cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()

def check(status):
    if status:
        sys.exit(f"the driver returned {status}")

check(cuda.cuInit(0))
mark("cuInit")
check(cuda.cuDeviceGet(ctypes.byref(device), 0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check(cuda.cuCtxSetCurrent(context))
mark("context")
layer = tcc.jit('''
kernel layer(A: f16[M, K], B: f16[K, N], bias: f32[N], alpha: f32) -> (C: f16[M, N])
{
    acc[m, n] = sum(k) A[m, k] * B[k, n];
    C[m, n]   = relu(alpha * acc[m, n] + bias[n]);
}
''', assemble="at once" if "--assemble" in sys.argv else "never")
mark("jit")
matrix = numpy.ones((256, 256), numpy.float16)
arguments = matrix, matrix, numpy.ones(256, numpy.float32), 0.5
last = clock()
layer(*arguments)
mark("first call")
took["jit and first call"] = took["jit"] + took["first call"]
took["in all"] = sum(took[name] for name in ("import tcc", "cuInit", "context", "jit and first call"))
layer(*arguments)
mark("second call")
print(json.dumps(took))
"""


def run(folder, *options):
    """What one process took, in ms, by name."""
    environment = dict(os.environ, TCC_CACHE_DIR=os.path.join(folder, "tcc"),
                       CUDA_CACHE_PATH=os.path.join(folder, "cuda"))
    said = subprocess.run([sys.executable, "-c", PROGRAM, *options], env=environment, check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return json.loads(said)


def medians(rows):
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=15)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("wheel", nargs="?", type=pathlib.Path)
    given = parser.parse_args()
    options = ["--cpu"] * given.cpu
    with tempfile.TemporaryDirectory() as scratch:
        if given.wheel:
            zipfile.ZipFile(given.wheel).extractall(os.path.join(scratch, "site"))
            os.environ["PYTHONPATH"] = os.path.join(scratch, "site")
            compileall.compile_dir(os.path.join(scratch, "site"), quiet=1)  # as an installation does

        def empty(*more):
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                return run(folder, *options, *more)

        def kept(*more):
            folder = os.path.join(scratch, "kept" + "".join(more))
            run(folder, *options, *more)  # fills it
            return [run(folder, *options, *more) for _ in range(given.processes)]

        empty()  # files are read from the disk
        table = {"empty caches": medians([empty() for _ in range(given.processes)]), "from disk": medians(kept()),
                 "machine code": medians(kept("--assemble"))}
    table["import"] = {"import tcc": table["from disk"]["import tcc"]}
    names = list(table["from disk"])
    print(f"{'ms' + ', processor time' * given.cpu:20}" + "".join(f"{title:>14}" for title in list(table)[:3]))
    for name in names:
        print(f"{name:20}" + "".join(f"{table[title][name]:14.1f}" for title in list(table)[:3]))
    missed = [f"{name}, {title}: {table[title][name]:.1f} ms, at most {goal}"
              for title, goals in GOALS_MS.items() for name, goal in goals.items() if table[title][name] > goal]
    print("missed: " + "; ".join(missed) if missed else "all within their limits")
    return bool(missed)


sys.exit(main())
