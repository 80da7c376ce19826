"""Compares the keys in docs/language.md with ir/schedule_keys.def: schedule_keys.py IR_DIR LANGUAGE.md

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import re
import sys


def calls(path, macro):
    """The text between the parentheses of each call of a macro."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    return re.findall(rf"^{macro}\((.*?)\)$", text, flags=re.DOTALL | re.MULTILINE)


def capabilities(text):
    return set(re.findall(r"CAN\((\w+)\)", text))


def rows(ir):
    families = [
        (*(part.strip() for part in f.split(",")[:2]), capabilities(f)) for f in calls(f"{ir}/families.def", "FAMILY")
    ]
    vendors = sorted({vendor for _, vendor, _ in families})
    for call in calls(f"{ir}/schedule_keys.def", "KEY"):
        name, form, least, most = (part.strip() for part in call.split(",")[:4])
        strings = re.findall(r'"(.*?)"', call)
        words = [s.removesuffix("\\0") for s in strings if s.endswith("\\0")]
        doc = "".join(s for s in strings if not s.endswith("\\0"))
        value = ", ".join(f"`{w}`" for w in words)
        if form in ("TILE", "NUMBER"):
            value = f"{value}, each {least} to {most}" if words else f"{least} to {most}"
        elif form == "NAMES":
            value = f"intermediates: {value}"
        elif form == "WORDS":
            value += " for each tensor"
        whose = []  # vendors, or families of one of which not all have it
        for vendor in vendors:
            have = [family for family, of, can in families if of == vendor and capabilities(call) <= can]
            whose += [vendor] if len(have) == sum(of == vendor for _, of, _ in families) else have
        yield f"| `{name}` | {value} | {'all' if whose == vendors else ', '.join(whose)} | {doc} |"


with open(sys.argv[2], encoding="utf-8") as document:
    table = document.read().partition("| key | value |")[2].partition("\n\n")[0].splitlines()[2:]
want = list(rows(sys.argv[1]))
for row in want:
    if row not in table:
        print(f"{sys.argv[2]}: error: the table of keys lacks\n{row}")
for row in table:
    if row.split("|")[1] not in [w.split("|")[1] for w in want]:
        print(f"{sys.argv[2]}: error: there is no key\n{row}")
sys.exit(table != want or not want)
