"""Checks what a document says of manifests: manifest.py DOC MANIFEST.json...

Its JSON block is the first, '…' standing for what is cut, and the comments of its programs that
begin with '{' or '"' quote one of them, up to a '…'.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import re
import sys

import snippets


def pretty(text):
    return json.dumps(json.loads(text), ensure_ascii=False, indent=1).split("\n")


def main(document, *paths):
    manifests = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            manifests.append(file.read())
    failed = False
    for block in snippets.blocks(document):
        text = "\n".join(block.lines)
        if block.info == "json":
            wrong = snippets.mismatch(pretty(text), pretty(manifests[0]))
            if wrong:
                print(f"{document}:{block.line}: error: not the manifest\n{wrong[1]}")
                failed = True
        for quoted in re.findall(r'/\* ([{"][^…\n]*).* \*/', text):
            if not any(quoted.strip() in manifest for manifest in manifests):
                print(f"{document}: error: in no manifest: {quoted}")
                failed = True
    return failed


sys.exit(main(*sys.argv[1:]))
