"""Finds calls and initializers in which two arguments make ops: emission_order.py FILE.c …

C leaves their order open. gcc takes the last first, clang the first: the ops, and with them the
PTX, would depend on the compiler that tcc was built with.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import re
import sys

MAKES_OP = {"TCC_EMIT", "TCC_EMIT_V"}
MAKES_NONE = {"tcc_value_map_get", "tcc_map_get", "tcc_walk_next"}
RETURNS_OP = re.compile(r"\b(?:tcc_value|tcc_op) \*(\w+)\(")


def read(path):
    """The text without what comments and strings say, with the same lines."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    blank = lambda m: re.sub(r"[^\n]", " ", m[0])
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', blank, text, flags=re.S)


def arguments(code, start):
    """What stands between the commas of the bracket that opens at `start`."""
    depth, begin, found = 0, start + 1, []
    for i in range(start, len(code)):
        if code[i] in "([{":
            depth += 1
        elif code[i] in ")]}":
            depth -= 1
            if depth == 0:
                return found + [code[begin:i]]
        elif code[i] == "," and depth == 1:
            found.append(code[begin:i])
            begin = i + 1
        elif code[i] == ";" and depth == 1:
            return []  # a block
    return []


def main(paths):
    headers = {f"{folder}/{name}" for folder in {os.path.dirname(p) for p in paths}
               for name in os.listdir(folder) if name.endswith(".h")}
    makers = set(MAKES_OP)
    for header in headers:
        makers |= set(RETURNS_OP.findall(read(header)))
    n_found = 0
    for path in paths:
        code = read(path)
        local = set(RETURNS_OP.findall(code)) | set(re.findall(r"^[A-Z]+\((\w+), \w+\)$", code, re.M))
        local |= set(re.findall(r"#define (\w+)\(", code))
        names = (makers | local | {"tcc_build_i32", "tcc_build_int", "tcc_build_float"}) - MAKES_NONE
        code = re.sub(r"^ *#(?:.*\\\n)*.*", lambda m: re.sub(r"[^\n]", " ", m[0]), code, flags=re.M)
        for bracket in re.finditer(r"(?<=\w)\(|(?<==) \{|(?<=\))\{", code):
            emitting = [a for a in arguments(code, bracket.end() - 1)
                        if not names.isdisjoint(re.findall(r"\b(\w+)\(", a))]
            if len(emitting) > 1 and not re.search(r"\b(if|for|while|switch)\s*$", code[:bracket.start()]):
                line = code.count("\n", 0, bracket.start()) + 1
                print(f"{path}:{line}: in no order:", *(a.split("(")[0].strip() for a in emitting))
                n_found += 1
    return n_found > 0


sys.exit(main(sys.argv[1:]))
