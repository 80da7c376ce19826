"""Finds wording that no engineer would use: wording.py [--anywhere] FILE...

What it reads of a file: of Markdown the prose, without code; of C the string literals of more than
one word; of the public API (include/) and of checker/ the comments, too. With --anywhere it reads all, and looks for
other phrases.

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
# The same of all text, comments of every folder and tests among it.
ANYWHERE = [
    (r"(?!there\b|here\b)\w+\W*\s(?:is|are|was|were)\s+no\s+(?:array|buffer|code|condition|contradiction|coordinate|dimension|error"
     r"|expression|function|index|instruction|integer|kernel|map|multiple|number|object|op|operation|operator|page|proof"
     r"|part|pointer|power|product|scalar|string|stride|such|sum|tensor|text|tile|type|value"
     r"|variant|word)s?", "is not a"),
    (r"wants", "needs, or in messages: expected"),
    (r"how many-th", "the number of"),
]


def pattern_of(phrases):
    return re.compile(r"\b(?:" + "|".join(f"({p})" for p, _ in phrases) + r")\b", re.IGNORECASE)


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


def find(path, prose, phrases):
    """Prints what is found of the phrases in a text; whether anything is."""
    # A phrase may go on in the next line, and there behind a comment's star or a quotation mark.
    prose = re.sub(r'(?<=\n)( *)(?:\*(?!/)|//)', lambda m: " " * len(m.group()), prose)
    found = False
    for match in pattern_of(phrases).finditer(re.sub(r"\s", " ", re.sub(r'"(\s+)"', r" \1 ", prose))):
        line = prose.count("\n", 0, match.start()) + 1
        print(f"{path}:{line}: '{match.group()}': {phrases[match.lastindex - 1][1]}")
        found = True
    return found


def main(arguments):
    anywhere = arguments[:1] == ["--anywhere"]
    found = False
    for path in arguments[anywhere:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if anywhere:
            found |= find(path, text, ANYWHERE)
        else:
            prose = markdown(text) if path.endswith(".md") else c(text, path.startswith(("include/", "checker/")))
            found |= find(path, prose, PHRASES)
    return found


sys.exit(main(sys.argv[1:]))
