"""Chooses the lit tests that run with sanitizers, and writes the others to left_out.txt.

    ./dev build counted && python3 tests/sanitized/choose.py build-counted

Each test runs on a build whose programs count how often each of their branches runs, and so do the quicker unit tests,
all of which have sanitizers. Lit tests are taken, those first that have the most new branches for their time, until
every branch is taken; of these go, the longest first, those whose branches the others have by then. What is not in the
list, as a new test or one that runs nothing that counts, runs with sanitizers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import collections
import os
import shutil
import subprocess
import sys

LLVM = "/usr/lib/llvm-22/bin"
LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "left_out.txt")
# Unit tests that are not counted: they are long, and what they run others run, or no sanitizer sees it.
SLOW = "out_of_memory|mutations|expand_math|llvm_errors|test_threads|test_tune$|test_hip"

HEADER = """# Tests whose branches others take, too: not run with sanitizers. Written by tests/sanitized/choose.py.
"""


def branches_of(folder):
    """{(function, number of its counter)} of those that ran."""
    raw = [os.path.join(folder, name) for name in os.listdir(folder)]
    text = subprocess.run([LLVM + "/llvm-profdata", "merge", "-text", *raw, "-o", "-"], stdout=subprocess.PIPE,
                          encoding="utf-8", check=True).stdout
    ran, lines = set(), iter(line for line in text.split("\n") if not line.startswith(("#", ":")))
    for name in lines:  # its name, hash, number of counters, these, and an empty line
        if name:
            next(lines)
            ran.update((name, i) for i in range(int(next(lines))) if next(lines) != "0")
    return ran


def seconds_of(build):
    with open(os.path.join(build, "tests", ".lit_test_times.txt"), encoding="utf-8") as file:
        return {name: max(abs(float(seconds)), 0.01) for seconds, name in (line.strip().split(" ", 1) for line in file)}


def choose(branches, seconds, taken):
    """The names of tests that take all branches but those that are taken."""
    left, chosen = {name: ran - taken for name, ran in branches.items()}, []
    while any(left.values()):
        best = max(sorted(left), key=lambda name: len(left[name]) / seconds[name])
        new = left.pop(best)
        left = {name: ran - new for name, ran in left.items()}
        chosen.append(best)
    takers = collections.Counter(branch for name in chosen for branch in branches[name] - taken)
    for name in sorted(chosen, key=seconds.get, reverse=True):
        own = branches[name] - taken
        if all(takers[branch] > 1 for branch in own):
            takers.subtract(own)
            chosen.remove(name)
    return chosen


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true", help="choose from what an earlier run has left")
    o = parser.parse_args()
    counts, counts_of_units = (os.path.join(os.path.abspath(o.build), name) for name in ("counts", "counts-units"))
    if not o.again:
        shutil.rmtree(counts, ignore_errors=True)
        shutil.rmtree(counts_of_units, ignore_errors=True)
        units = subprocess.run(["ctest", "--test-dir", o.build, "-j", str(o.jobs), "-LE", "slow", "-E", SLOW],
                               env={**os.environ, "LLVM_PROFILE_FILE": counts_of_units + "/%m.profraw"}, check=False)
        run = subprocess.run([LLVM + "/lit", "-q", "-j", str(o.jobs), os.path.join(o.build, "tests")],
                             env={**os.environ, "TCC_COUNTS": counts}, check=False)
        if run.returncode or units.returncode:
            return "tests have failed: nothing is chosen"
    seconds = seconds_of(o.build)
    branches = {}
    for folder, _, files in os.walk(counts):
        if files:
            branches[os.path.relpath(folder, counts)] = branches_of(folder)
    chosen = choose(branches, seconds, branches_of(counts_of_units))
    with open(LIST, "w", encoding="utf-8") as file:
        file.write(HEADER + "".join(name + "\n" for name in sorted(set(branches) - set(chosen))))
    print("%d tests of %d, %d s of %d" % (len(chosen), len(branches), sum(seconds[name] for name in chosen),
                                          sum(seconds[name] for name in branches)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
