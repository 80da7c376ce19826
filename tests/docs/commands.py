"""Runs the commands of Markdown files and compares what they print:
commands.py [--gpu] [--only=KIND] [--renumber] [--tree=ROOT] [--prefix=PREFIX] FILE... DIR

A block marked with a language and a path becomes the file of that name in DIR. In a block marked
`console` a line `$ command`, with the lines `> …` behind it, is run by sh in DIR, and the lines up to the
next one are its output, errors included; what it exports is there for those that follow in the file. Blocks marked
`console gpu` are run with --gpu only, and those marked `console KIND` with --only=KIND, which runs no others.
With --renumber lines of output that differ in the numbers of the IR's values alone are corrected. With --prefix commands have PREFIX where they say /opt/tcc.

With --tree the lines of blocks marked `sh` are run instead, and have to succeed: ./dev and CMake in the
source tree ROOT, the others in DIR, which gets links to what ROOT has and to its examples.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import re
import subprocess
import sys

import snippets


def write_file(block):
    words = block.info.split()
    if len(words) == 2 and "." in words[1]:
        with open(os.path.basename(words[1]), "w", encoding="utf-8") as file:
            file.write("\n".join(block.lines) + "\n")


def commands_of(block):
    """(command, first line of its output in the block, end of that) of each of a block's commands."""
    starts = [i for i, line in enumerate(block.lines) if line.startswith("$ ")]
    for start, end in zip(starts, starts[1:] + [len(block.lines)]):
        output = start + 1
        while output < end and block.lines[output].startswith("> "):
            output += 1
        yield "\n".join(line[2:] for line in block.lines[start:output]), output, end


QUICKLY = "--tiles=1 --no-cubins"


def quick_tcc():
    """The path of a program in the current folder that compiles so."""
    path = os.path.abspath("quick-tcc")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\ncase $1 in --version) exec tcc "$1" ;; *) exec tcc "$@" {QUICKLY} ;; esac\n')
    os.chmod(path, 0o755)
    return path


def run(block, prefix, environment, renumbered=None):
    """Runs a block's commands; None, or (line of the block, what is wrong). Corrects numbers in a document
    that is to be renumbered."""
    for command, output, end in commands_of(block):
        command = command.replace("/opt/tcc", prefix)
        # For several targets, with cubins, all tiles take seconds each time: tests/driver/ahead_of_time.test has them.
        command = re.sub(r"^tcc \S+ --target=\w+,\S+", rf"\g<0> {QUICKLY}", command)
        command = command.replace("cmake -S examples/", f"cmake -DTCC_COMPILER={quick_tcc()} -S examples/")
        if command.startswith("export "):
            shown = subprocess.run(["sh", "-c", command + " && env -0"], stdout=subprocess.PIPE,
                                   env=environment, encoding="utf-8", check=True).stdout
            environment.update(line.split("=", 1) for line in shown.split("\0") if line)
            continue
        done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, env=environment,
                              stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        want, got = block.lines[output:end], done.stdout.splitlines()
        wrong = snippets.mismatch(want, got)
        lines = snippets.Block("", "", block.line + output, want)
        if wrong and not (renumbered and snippets.renumber(renumbered, lines, got)):
            return output + wrong[0], wrong[1]
    return None


# The release preset's folder is another here, so that nothing of an earlier build is in it, and no later one takes what
# is not optimised, which compiles in a quarter of the time.
RELEASE = (
    ("cmake --preset release", "cmake --preset release -B FOLDER -DCMAKE_C_FLAGS_RELEASE='-O0 -DNDEBUG'"),
    ("cmake --build --preset release", "cmake --build FOLDER"),
    ("cmake --install build-release", "cmake --install FOLDER"),
)


def run_in_tree(block, root, prefix):
    """Runs a block's lines; None, or (line of the block, what is wrong)."""
    for i, line in enumerate(block.lines):
        command = line.partition("  # ")[0].strip().replace("/opt/tcc", prefix)
        if not command or command == "./dev test":  # which runs this
            continue
        command = re.sub(r"--count=\d+", "--count=2", command)
        command = re.sub(r"(whole_programs\.py .*) 1000 2000 ", r"\1 1000 1002 ", command)
        for said, done in RELEASE:
            command = command.replace(said, done.replace("FOLDER", os.path.abspath("release")))
        print("$", command, flush=True)
        there = root if command.startswith(("./dev ", "cmake ")) else "."
        if subprocess.run(["sh", "-c", command], cwd=there, stdin=subprocess.DEVNULL,
                          check=False).returncode:
            return i, command
    return None


def link_tree(root):
    """Links to all that a source tree has, and to its examples."""
    for folder in (root, os.path.join(root, "examples")):
        for name in os.listdir(folder):
            if not os.path.lexists(name):
                os.symlink(os.path.join(folder, name), name)


def main(arguments):
    tree = next((os.path.abspath(a[7:]) for a in arguments if a.startswith("--tree=")), None)
    kinds = ["console " + a[7:] for a in arguments if a.startswith("--only=")]
    kinds = kinds or ["console"] + ["console gpu"] * ("--gpu" in arguments)
    prefix = next((a[9:] for a in arguments if a.startswith("--prefix=")), "/opt/tcc")
    *documents, folder = [os.path.abspath(a) for a in arguments if not a.startswith("--")]
    os.chdir(folder)
    if tree:
        link_tree(tree)
    failed = False
    for document in documents:
        environment = dict(os.environ)
        for block in snippets.blocks(document):
            if tree:
                wrong = run_in_tree(block, tree, prefix) if block.info == "sh" else None
            elif block.info in kinds:
                wrong = run(block, prefix, environment, document if "--renumber" in arguments else None)
            else:
                wrong = write_file(block)
            if wrong:
                what = "fails" if tree else "not what is printed"
                print(f"{document}:{block.line + wrong[0]}: error: {what}\n{wrong[1]}")
                failed = True
    return failed


sys.exit(main(sys.argv[1:]))
