"""Finds wording that no engineer would use: wording.py FILE...

What it reads of a file: of Markdown the prose, without code; of C the string literals of more than
one word; of the public API (include/) and of checker/ the comments, too.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import re
import sys

# A pattern, and what to write instead.
PHRASES = [
    (r"(?:is|are) no multiples? of", "is not a multiple of"),
    (r"comes? to lie", "ends up"),
    (r"of what is", "say what it is"),
    (r"what it is about", "name it"),
    (r"not let through", "rejected"),
    (r"nobody", "name what does not"),
    (r"by way of", "through"),
    (r"is to be", "must be"),
    (r"factors?", "operand"),
    (r"(?<!round )(?<!round-)(?<!single-)trips?", "iteration"),
]
PATTERN = re.compile(r"\b(?:" + "|".join(f"({p})" for p, _ in PHRASES) + r")\b", re.IGNORECASE)


def blank(match):
    """The same lines with nothing in them, so that offsets keep their lines."""
    return re.sub(r"[^\n]", " ", match.group())


def markdown(text):
    text = re.sub(r"^```.*?^```", blank, text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", blank, text)


STRING = r'"(?:\\.|[^"\\\n])*"'
TOKEN = re.compile(
    rf"/\*.*?\*/|//[^\n]*|{STRING}(?:\s*{STRING})*|'(?:\\.|[^'\\\n])*'|[^\"'/]+|/",
    re.DOTALL)


def c(text, comments):
    def keep(match):
        token = match.group()
        if token[0] == '"' and " " in token or comments and token[:2] == "/*":
            return token
        return blank(match)

    return TOKEN.sub(keep, text)


found = False
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    prose = markdown(text) if path.endswith(".md") else c(text, path.startswith(("include/", "checker/")))
    # A phrase may go on in the next line, and there behind a comment's star or a quotation mark.
    prose = re.sub(r'(?<=\n)( *)\*(?!/)', r"\1 ", prose)
    for match in PATTERN.finditer(re.sub(r"\s", " ", re.sub(r'"(\s+)"', r" \1 ", prose))):
        line = prose.count("\n", 0, match.start()) + 1
        print(f"{path}:{line}: '{match.group()}': {PHRASES[match.lastindex - 1][1]}")
        found = True
sys.exit(found)
