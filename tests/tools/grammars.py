"""grammars.py ROOT: the grammars of editors/ have the words that the frontend's tables have.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import re
import subprocess
import sys

root = sys.argv[1]

TABLES = r"""
#define CAN(x) x
#define PUNCT(id, text)
#define TOKEN(id, text)
#define KEYWORD(id, text) (keyword text)
#define ELEMENT(type) (element #type)
#define FUNCTION(name, ...) (function #name)
#define CONVERSION(type, ...) (function #type)
#define KEY(name, form, min, max, words, ...) (key #name) (form words)
#define TILE tile
#define NUMBER number
#define WORD word
#define BYTES word
#define WORDS word
#include "frontend/tokens.def"
#include "frontend/elements.def"
#include "frontend/functions.def"
#include "ir/schedule_keys.def"
"""


def tables():
    text = subprocess.run(["gcc", "-E", "-P", "-I", root, "-x", "c", "-"], input=TABLES, capture_output=True, text=True,
                          check=True).stdout
    found = {kind: set(re.findall(rf'\({kind} "(\w+)"', text)) for kind in ("keyword", "element", "function", "key")}
    found["function"] |= {"argmin", "argmax"}  # which reduce, and are not functions beside that
    lists = re.findall(r'\(word ((?:"\w+\\0" ?)+)\)', text)
    found["word"] = {w for words in lists for w in re.findall(r'"([a-z]\w*)\\0"', words)}
    return found


def of_vim():
    with open(f"{root}/editors/vim/syntax/tile.vim", encoding="utf-8") as f:
        text = f.read()

    def keywords(group):
        lines = re.findall(rf"^syn keyword {group}(?: contained)? (.*)$", text, re.M)
        return {word for line in lines for word in line.split()}

    def match(group):
        words = re.search(rf"^syn match {group} .*\\<\\\((.*?)\\\)\\>", text, re.M).group(1)
        return set(words.split(r"\|"))

    return {"keyword": keywords("tileKeyword"), "element": match("tileType"), "function": match("tileFunction"),
            "key": keywords("tileKey"), "word": keywords("tileWord")}


def of_textmate():
    with open(f"{root}/editors/vscode/syntaxes/tile.tmLanguage.json", encoding="utf-8") as f:
        grammar = json.load(f)
    patterns = []

    def walk(node):
        for name, value in node.items() if isinstance(node, dict) else enumerate(node):
            if name in ("match", "begin", "end"):
                re.compile(value)
            if name == "include":
                assert value[1:] in grammar["repository"], value
            if name == "match" and "name" in node:
                patterns.append((node["name"], value))
            if isinstance(value, (dict, list)):
                walk(value)

    walk(grammar)

    def words(name):
        [pattern] = [p for n, p in patterns if n == name]
        return set(re.search(r"\\b\(([\w|]+)\)\\b", pattern).group(1).split("|"))

    return {"keyword": words("keyword.control.tile"), "element": words("storage.type.tile"),
            "function": words("support.function.tile"), "key": words("support.type.property-name.tile"),
            "word": words("constant.language.word.tile")}


expected = tables()
assert all(len(words) > 5 for words in expected.values()), expected
for editor, found in ("vim", of_vim()), ("textmate", of_textmate()):
    for kind, words in expected.items():
        assert found[kind] == words, f"{editor}: {kind}: differs by {sorted(found[kind] ^ words)}"
print("the same words")
