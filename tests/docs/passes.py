"""Checks that docs/passes.md shows what the compiler prints: passes.py [--renumber] DOC FILE.tile

The document's headings of the form "## `pass`, `pass`" are the pipeline. The blocks marked `tir`
below one of them show the module after its last pass: a whole function, or lines between cuts.
With --renumber, lines that differ in the numbers of values only are corrected in DOC.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import re
import subprocess
import sys

import snippets


def print_after_all(source):
    """[(pass, module as lines)] in the order in which the passes ran."""
    command = ["tcc", source, "--emit=tir", "-o", "/dev/null", "--print-after=all"]
    text = subprocess.run(command, stderr=subprocess.PIPE, encoding="utf-8", check=True).stderr
    parts = re.split(r"^// after (\S+?)(?:: no change)?\n", text, flags=re.M)
    return [(name, body.splitlines()) for name, body in zip(parts[1::2], parts[2::2])]


def shown_part(block, module):
    """The function that the block begins with, or all of the module."""
    begin = re.match(r"func @\w+\(", block.lines[0])
    if not begin:
        return module
    start = next((i for i, line in enumerate(module) if line.startswith(begin[0])), len(module))
    return module[start : module.index("}", start) + 1] if start < len(module) else []


def main(arguments):
    document, source = [a for a in arguments if not a.startswith("--")]
    printed = print_after_all(source)
    with open(document, encoding="utf-8") as file:
        headings = re.findall(r"^## (`[a-z-]+`(?:, `[a-z-]+`)*)$", file.read(), flags=re.M)
    passes = [re.findall(r"[a-z-]+", heading) for heading in headings]
    if sum(passes, []) != [name for name, _ in printed]:
        print(f"{document}: error: its headings are not the pipeline:",
              ",".join(name for name, _ in printed))
        return True

    ran, module_after = 0, {}
    for heading, names in zip(headings, passes):
        ran += len(names)
        module_after[heading] = printed[ran - 1][1]
    failed, unseen = False, set(headings)
    for block in snippets.blocks(document):
        if block.info != "tir" or block.heading not in module_after:
            continue
        unseen.discard(block.heading)
        got = shown_part(block, module_after[block.heading])
        wrong = snippets.mismatch(block.lines, got)
        if wrong and not ("--renumber" in arguments and snippets.renumber(document, block, got)):
            print(f"{document}:{block.line + wrong[0]}: error: not what is printed\n{wrong[1]}")
            failed = True
    for heading in unseen:
        print(f"{document}: error: nothing is shown below {heading}")
        failed = True
    return failed


sys.exit(main(sys.argv[1:]))
