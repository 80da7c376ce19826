"""Checks that the package calls libtcc's functions with the types that the headers declare: prototypes.py FOLDER

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes as c
import pathlib
import re
import sys

from tcc import _lib

TEXT = re.sub(r"/\*.*?\*/", "", "".join(p.read_text() for p in sorted(pathlib.Path(sys.argv[1]).glob("*.h"))), flags=re.S)
NUMBERS = {"int": c.c_int, "unsigned": c.c_uint, "size_t": c.c_size_t, "uint8_t": c.c_uint8, "int64_t": c.c_int64,
           "uint64_t": c.c_uint64, "double": c.c_double, "bool": c.c_bool, "tcc_status": c.c_int, "tcc_emit": c.c_int,
           "tcc_vendor": c.c_int}


def kind_of(declared):
    """The type of a number that a header declares; None: it is a pointer or a struct."""
    words = [w for w in re.findall(r"\w+", declared) if w != "const"]
    return None if "*" in declared or words[0].endswith("_fn") else NUMBERS.get(words[0])


def is_number(kind):
    return kind is not None and issubclass(kind, c._SimpleCData) and kind not in (c.c_void_p, c.c_char_p)


for name, (result, arguments) in _lib._FUNCTIONS.items():
    found = re.search(r"TCC_API\s+([^;()]*?[\s*])" + name + r"\(([^;]*)\);", TEXT)
    assert found, f"no header declares {name}"
    declared = [] if found[2] == "void" else found[2].split(",")
    assert len(declared) == len(arguments), f"{name} takes {len(declared)} arguments, not {len(arguments)}"
    result = c.c_int if result == "status" else result
    for text, kind in zip([found[1], *declared], [result, *arguments]):
        wanted = kind_of(text)
        assert kind is wanted if wanted else not is_number(kind), f"{name}: '{text.strip()}' is given as {kind}"
print(f"{len(_lib._FUNCTIONS)} functions")
