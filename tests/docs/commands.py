"""Runs the commands of Markdown files and compares what they print:
commands.py [--gpu] [--prefix=PREFIX] FILE... DIR

A block marked with a language and a path becomes the file of that name in DIR. In a block marked
`console` a line `$ command` is run by sh in DIR, and the lines up to the next one are its output,
errors included; what it exports is there for those that follow in the file. Blocks marked
`console gpu` are run with --gpu only. With --prefix commands have PREFIX where they say /opt/tcc.

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


def run(block, prefix, environment):
    """Runs a block's commands; None, or (line of the block, what is wrong)."""
    starts = [i for i, line in enumerate(block.lines) if line.startswith("$ ")]
    for start, end in zip(starts, starts[1:] + [len(block.lines)]):
        command = block.lines[start][2:].replace("/opt/tcc", prefix)
        if command.startswith("export "):
            shown = subprocess.run(["sh", "-c", command + " && env -0"], stdout=subprocess.PIPE,
                                   env=environment, encoding="utf-8", check=True).stdout
            environment.update(line.split("=", 1) for line in shown.split("\0") if line)
            continue
        done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, env=environment,
                              stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        wrong = snippets.mismatch(block.lines[start + 1 : end], done.stdout.splitlines())
        if wrong:
            return start + 1 + wrong[0], wrong[1]
    return None


def main(arguments):
    kinds = ["console"] + ["console gpu"] * ("--gpu" in arguments)
    prefix = next((a[9:] for a in arguments if a.startswith("--prefix=")), "/opt/tcc")
    *documents, folder = [os.path.abspath(a) for a in arguments if not a.startswith("--")]
    os.chdir(folder)
    failed = False
    for document in documents:
        environment = dict(os.environ)
        for block in snippets.blocks(document):
            if block.info not in kinds:
                write_file(block)
                continue
            wrong = run(block, prefix, environment)
            if wrong:
                print(f"{document}:{block.line + wrong[0]}: error: not what is printed\n{wrong[1]}")
                failed = True
    return failed


sys.exit(main(sys.argv[1:]))
