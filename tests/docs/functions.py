"""Compares the errors of functions in docs/language.md with ir/math.def: functions.py MATH.def LANGUAGE.md

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import re
import sys


def rows_of_def(path):
    """{name: (ulps, below, slope, square, least)}"""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    rows = re.findall(r"^MATH(?:_NATIVE)?\((\w+),(.*?)\)$", text, flags=re.DOTALL | re.MULTILINE)
    quotients = re.findall(r"^MATH_QUOTIENT\((.*)\)$", text, flags=re.MULTILINE)
    rows += [("x / y", f"{ulps}, {ulps}, 0, 0, -150") for ulps in quotients]
    return {name: tuple(float(x) for x in row.split(",")[-5:]) for name, row in rows}


def below_zero(cell, ulps):
    """What `7 + 1.3 abs(x) + 2 x^2` says; nothing says the same as for x >= 0."""
    terms = {"": ulps, "abs(x)": 0.0, "x^2": 0.0}
    for term in cell.split("+") if cell else []:
        number, _, of = term.strip().partition(" ")
        terms[of] = float(number)
    return terms[""], terms["abs(x)"], terms["x^2"]


def rows_of_table(path):
    rows = {}
    with open(path, encoding="utf-8") as file:
        table = file.read().partition("| function | error in ulps")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        names, ulps, below, least = (cell.strip() for cell in line.split("|")[1:-1])
        for name in re.findall(r"`(\w+|x / y)`", names):
            smallest = float(least.removeprefix("2^")) if least else -150.0
            rows[name] = (float(ulps), *below_zero(below, float(ulps)), smallest)
    return rows


want, shown = rows_of_def(sys.argv[1]), rows_of_table(sys.argv[2])
wrong = [name for name in want if shown.get(name) != want[name]]
for name in wrong:
    print(f"{sys.argv[2]}: error: '{name}' has {want[name]} in {sys.argv[1]}, and here {shown.get(name)}")
sys.exit(bool(wrong) or not want)
