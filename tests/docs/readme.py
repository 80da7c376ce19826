"""Follows README.md from the top: readme.py [--built] [--gpu] TREE

The lines of its `sh` blocks and the commands of its `console` blocks are given to one shell, which begins in the source
tree with no more settings than a home and a search path, in their order. `sh` lines have to succeed, commands to print
what is shown. A block that is marked with a path is the file of that name. With --built the tree has been built, and the
first line is left out; `console gpu` blocks need --gpu.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import subprocess
import sys
import tempfile

import snippets

END = "readme.py: ended with"


class Shell:
    """A shell that is given one command after the other."""

    def __init__(self, folder, home):
        bare = {"HOME": home, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self._shell = subprocess.Popen(["sh"], cwd=folder, env=bare, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, encoding="utf-8")

    def run(self, command):
        """Its status, and the lines that it printed."""
        self._shell.stdin.write(f"{command}\necho '{END}' $?\n")
        self._shell.stdin.flush()
        lines = []
        for line in self._shell.stdout:
            if line.startswith(END):
                return int(line.split()[-1]), lines
            lines.append(line.rstrip("\n"))
        return -1, lines


def commands_of(block):
    """The commands of a block, each with its line and with what it prints; None: anything."""
    if block.info == "sh":
        for i, line in enumerate(block.lines):
            yield line.partition("  # ")[0].rstrip(), i, None
        return
    starts = [i for i, line in enumerate(block.lines) if line.startswith("$ ")]
    for start, end in zip(starts, starts[1:] + [len(block.lines)]):
        yield block.lines[start][2:], start, block.lines[start + 1:end]


def check_file(block, tree):
    """What is wrong with a block that is a file."""
    path = os.path.join(tree, block.info.split()[1])
    with open(path, encoding="utf-8") as file:
        return None if file.read().rstrip("\n").split("\n") == block.lines else f"is not {path}"


def main(arguments):
    *options, tree = arguments
    kinds = ["sh", "console"] + ["console gpu"] * ("--gpu" in options)
    readme, wrong, n = os.path.join(tree, "README.md"), [], 0
    with tempfile.TemporaryDirectory() as home:
        shell = Shell(tree, home)
        for block in snippets.blocks(readme):
            if "." in block.info:
                why = check_file(block, tree)
                wrong += [(block.line, why)] if why else []
            if block.info not in kinds:
                continue
            for command, line, shown in commands_of(block):
                n += 1
                if n == 1 and "--built" in options:
                    continue
                print("$", command, flush=True)
                status, printed = shell.run(command)
                bad = snippets.mismatch(shown, printed) if shown is not None else None
                if bad or status:
                    wrong.append((block.line + line, bad[1] if bad else f"status {status}\n" + "\n".join(printed)))
    for line, why in wrong:
        print(f"{readme}:{line}: error: {why}")
    return bool(wrong) or n < 5


sys.exit(main(sys.argv[1:]))
