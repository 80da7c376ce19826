"""Runs the commands of Markdown files and compares what they print: commands.py [--gpu] FILE... DIR

A block marked with a language and a path becomes the file of that name in DIR. In a block marked
`console` a line `$ command` is run by sh in DIR, and the lines up to the next one are its output,
errors included. Blocks marked `console gpu` are run with --gpu only.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import subprocess
import sys

import snippets


def write_file(block):
    words = block.info.split()
    if len(words) == 2 and "." in words[1]:
        with open(os.path.basename(words[1]), "w", encoding="utf-8") as file:
            file.write("\n".join(block.lines) + "\n")


def run(block):
    """Runs a block's commands; None, or (line of the block, what is wrong)."""
    starts = [i for i, line in enumerate(block.lines) if line.startswith("$ ")]
    for start, end in zip(starts, starts[1:] + [len(block.lines)]):
        done = subprocess.run(["sh", "-c", block.lines[start][2:]], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        wrong = snippets.mismatch(block.lines[start + 1 : end], done.stdout.splitlines())
        if wrong:
            return start + 1 + wrong[0], wrong[1]
    return None


def main(arguments):
    kinds = ["console"] + ["console gpu"] * ("--gpu" in arguments)
    *documents, folder = [os.path.abspath(a) for a in arguments if a != "--gpu"]
    os.chdir(folder)
    failed = False
    for document in documents:
        for block in snippets.blocks(document):
            if block.info not in kinds:
                write_file(block)
                continue
            wrong = run(block)
            if wrong:
                print(f"{document}:{block.line + wrong[0]}: error: not what is printed\n{wrong[1]}")
                failed = True
    return failed


sys.exit(main(sys.argv[1:]))
