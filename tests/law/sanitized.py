"""Chooses of random tests, and looks at what is chosen: sanitized.py FOLDER

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import random
import sys

sys.path.insert(0, sys.argv[1])
import choose


def taken_by(branches, names):
    return set().union(*(branches[name] for name in names))


def main():
    pick = random.Random(1)
    n_left_out = 0
    for _ in range(100):
        names = [f"test{i}" for i in range(pick.randint(1, 30))]
        branches = {name: set(pick.sample(range(60), pick.randint(1, 25))) for name in names}
        by_units = set(pick.sample(range(60), 10))
        chosen = choose.choose(branches, {name: pick.uniform(0.01, 5) for name in names}, by_units)
        assert taken_by(branches, chosen) | by_units == taken_by(branches, names) | by_units
        for name in chosen:
            assert branches[name] - by_units - taken_by(branches, set(chosen) - {name})
        n_left_out += len(names) - len(chosen)
    assert n_left_out


main()
