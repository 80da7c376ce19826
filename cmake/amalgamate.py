"""Writes the runtime as one text that a C file can have in itself, everything in it static:
amalgamate.py ROOT OUT.c FILE.c...

Headers go in where they are first included, each with the source beside it that defines what it declares. Names that
a file keeps to itself, which another file may have, too, get the file's name in front; whatever the files share becomes
static by its declaration.
OUT.c defines the text as tcc_runtime_text. Comments are left out.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import re
import sys

TOKEN = re.compile(
    r"""(?P<line>^[ \t]*\#(?:[^\n\\]|\\\n|\\.)*) | (?P<string>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*') |
        (?P<name>[A-Za-z_]\w*) | (?P<space>\s+) | (?P<other>->|\d[\w.+-]*|.)""",
    re.VERBOSE | re.MULTILINE,
)
COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')|/\*.*?\*/|//[^\n]*', re.DOTALL)
FOR_CXX = re.compile(r"#ifdef __cplusplus\n.*?#endif\n", re.DOTALL)
INCLUDE = re.compile(r'^#include (?:"(?P<ours>[^"]+)"|<(?P<public>tcc/[^>]+)>|<(?P<system>[^>]+)>).*\n', re.MULTILINE)
API = re.compile(r"#if defined\(TCC_BUILDING\)\n.*?#endif\n", re.DOTALL)
# What an outermost declaration begins with that declares no function or object, or a static one.
NOT_SHARED = {"static", "typedef", "struct", "enum", "union", "_Static_assert"}

DECLARED = {";", ",", "[", ")", ":"}  # follow a member's name


def read(path):
    """A source text without comments."""
    with open(path, encoding="utf-8") as file:
        text = COMMENT.sub(lambda m: m[1] or " ", file.read())
    text = API.sub("", FOR_CXX.sub("", text))
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def tokens(text):
    """(kind, text, depth of braces before it) of each token."""
    depth, found = 0, []
    for match in TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        depth -= kind == "other" and token == "}"
        found.append((kind, token, depth))
        depth += kind == "other" and token == "{"
    return found


def declarations(toks):
    """The outermost declarations and definitions: lists of indices of tokens without blanks and lines."""
    current = []
    for i, (kind, token, depth) in enumerate(toks):
        if kind in ("space", "line"):
            continue
        current.append(i)
        ends_function = token == "}" and depth == 0 and is_function(toks, current)
        if depth == 0 and (token == ";" or ends_function):
            yield current
            current = []


def is_function(toks, current):
    """Whether braces that close here are a function's body: what comes before them is a parameter list."""
    outer = [toks[i][1] for i in current if toks[i][2] == 0]
    return outer[outer.index("{") - 1] == ")" and "=" not in outer


def own_names(toks):
    """What a file has to itself: its static functions and objects, its types, enumerators and macros."""
    names = set(re.findall(r"^[ \t]*#[ \t]*define (\w+)", "".join(t for _, t, _ in toks), re.MULTILINE))
    for at in declarations(toks):
        words = [toks[i] for i in at]
        outer = [(k, t) for k, t, d in words if d == 0]
        first = outer[0][1]
        if first == "typedef":
            names.add([t for k, t in outer if k == "name"][-1])
        elif first == "static" and ("other", "(") in outer and ("other", "=") not in outer:
            names.add(outer[outer.index(("other", "(")) - 1][1])
        elif first == "static":
            names |= declared(outer)
        if "enum" in (outer[0][1], outer[min(1, len(outer) - 1)][1]):
            names |= {t for j, (k, t, d) in enumerate(words) if d == 1 and k == "name" and words[j - 1][1] in "{,"}
        for j in range(len(words) - 1):
            if words[j][1] in ("struct", "enum", "union") and words[j + 1][0] == "name" and words[j][2] == 0 and \
                    first != "static":
                names.add(words[j + 1][1])
    return {name for name in names if not re.match(r"(tcc|TCC)_|^(CU|hip)", name)}


def declared(outer):
    """The names of objects: each before '=', '[', ',' or ';', outside of brackets."""
    names, brackets = set(), 0
    for j, (kind, token) in enumerate(outer):
        if brackets == 0 and token in ("=", "[", ",", ";") and outer[j - 1][0] == "name":
            names.add(outer[j - 1][1])
        brackets += (token == "[") - (token == "]")
    return names


def in_struct(toks):
    """For each token, whether it is a member's declaration."""
    stack, flags, words = [], [], []
    for kind, token, _ in toks:
        if kind == "other" and token == "{":
            stack.append(bool(words) and (words[-1] in ("struct", "union") or words[-2:-1] in (["struct"], ["union"])))
        elif kind == "other" and token == "}":
            stack.pop()
        flags.append(bool(stack) and stack[-1])
        if kind in ("name", "other"):
            words = words[-2:] + [token]
    return flags


def rename(toks, names, prefix):
    """The text with names made the file's own; members keep theirs."""
    text, members = [], in_struct(toks)
    significant = [i for i, (k, _, _) in enumerate(toks) if k not in ("space", "line")]
    after = {i: toks[j][1] for i, j in zip(significant, significant[1:])}
    before = {j: toks[i][1] for i, j in zip(significant, significant[1:])}
    for i, (kind, token, _) in enumerate(toks):
        if kind == "line":
            token = re.sub(r'"(?:[^"\\\n]|\\.)*"|(?<![\w.>#])[A-Za-z_]\w*',
                           lambda m: prefix + m[0] if m[0] in names else m[0], token)
        elif kind == "name" and token in names and before.get(i) not in (".", "->"):
            if not members[i] or after[i] not in DECLARED:
                token = prefix + token
        text.append(token)
    return "".join(text)


def make_static(text):
    """Makes what a text declares outside of everything static, if it is not."""
    toks = tokens(text)
    out = [t for _, t, _ in toks]
    for at in declarations(toks):
        first = toks[at[0]][1]
        if first in ("extern", "TCC_API"):
            out[at[0]] = "static"
        elif first not in NOT_SHARED and toks[at[0]][0] == "name" and len(at) > 1:
            out[at[0]] = "static " + first
    return "".join(out)


class Amalgamation:
    def __init__(self, root):
        self.root, self.done, self.systems, self.parts = root, set(), [], []

    def add(self, path):
        """Adds a file, after what it includes."""
        if path in self.done:
            return
        self.done.add(path)
        text = read(os.path.join(self.root, path))
        for match in INCLUDE.finditer(text):
            if match["system"]:
                self.systems += [] if match["system"] in self.systems else [match["system"]]
            else:
                self.add(match["ours"] or "include/" + match["public"])
        text = INCLUDE.sub("", text)
        if path.endswith(".c"):
            toks = tokens(text)
            stem = os.path.splitext(path)[0].replace("/", "_")
            text = rename(toks, own_names(toks), f"tcc_{stem}_")
        self.parts.append(make_static(text))
        source = os.path.splitext(path)[0] + ".c"
        if os.path.exists(os.path.join(self.root, source)):
            self.add(source)

    def text(self):
        includes = "".join(f"#include <{name}>\n" for name in sorted(self.systems))
        body = re.sub(r"\n{2,}", "\n", "\n".join(self.parts))
        body = re.sub(r" {2,}\\\n", r" \\\n", body)
        return includes + body


def literal(text):
    lines = text.replace("\\", "\\\\").replace('"', '\\"').split("\n")
    return "\n".join(f'    "{line}\\n"' for line in lines if line)


def main(root, out, *files):
    amalgamation = Amalgamation(root)
    for path in files:
        amalgamation.add(os.path.relpath(path, root))
    with open(out, "w", encoding="utf-8") as file:
        file.write("extern const char tcc_runtime_text[];\nconst char tcc_runtime_text[] =\n"
                   f"{literal(amalgamation.text())};\n")


main(*sys.argv[1:])
