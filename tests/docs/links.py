"""Checks that relative links in Markdown files lead somewhere: links.py [--cut] ROOT

With --cut those that do not become plain text.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import re
import sys


def documents(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith((".", "build")) and f != "dist"]
        yield from (os.path.join(folder, f) for f in files if f.endswith(".md"))


def prose(path):
    """The text without code."""
    with open(path, encoding="utf-8") as file:
        return re.sub(r"^```.*?^```$", "", file.read(), flags=re.M | re.S)


def anchors(path):
    """The anchors of the headings, by GitHub's rule."""
    headings = re.findall(r"^#+ +(.*)$", prose(path), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


def problem(document, target):
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    path = os.path.join(os.path.dirname(document), path) if path else document
    if not os.path.exists(path):
        return "no such file"
    if anchor and path.endswith(".md") and anchor not in anchors(path):
        return "no such heading"
    return None


def cut(document):
    with open(document, encoding="utf-8") as file:
        parts = re.split(r"(^```.*?^```$)", file.read(), flags=re.M | re.S)
    for i in range(0, len(parts), 2):  # the others are code
        parts[i] = re.sub(r"\[([^\[\]]*)\]\(([^)\s]+)\)",
                          lambda m: m[1] if problem(document, m[2]) else m[0], parts[i])
    with open(document, "w", encoding="utf-8") as file:
        file.write("".join(parts))


def main(root, cuts):
    failed = False
    for document in sorted(documents(root)) if cuts else []:
        cut(document)
    for document in sorted(documents(root)):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(document))):
            wrong = problem(document, target)
            if wrong:
                print(f"{os.path.relpath(document, root)}: error: {target}: {wrong}")
                failed = True
    return failed


sys.exit(main(sys.argv[-1], "--cut" in sys.argv))
