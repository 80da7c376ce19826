"""fmt.py ROOT: `tcc fmt` changes no meaning: every program of the tree, laid out anew, has the same IR or the same
diagnostics, and is laid out the same again. What is in examples/ is in the canonical layout already."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

root = sys.argv[1]


def tcc(*words, text):
    done = subprocess.run(["tcc", *words], input=text, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def meaning(text):
    """What the frontend makes of a text, without its places."""
    code, ir, messages = tcc("--emit=ir", "-", text=text)
    messages = [line for line in messages.decode(errors="replace").splitlines() if re.match(r"<stdin>:\d+:\d+: ", line)]
    ir = re.sub(rb" loc\(\d+:\d+\)|loc\(\d+:\d+\) ?", b"", ir)
    return code, ir, [re.sub(r"^<stdin>:\d+:\d+: ", "", line) for line in messages]


def squeezed(text):
    return re.sub(rb"\s+", b"", text)


def check(path):
    with open(path, "rb") as f:
        text = f.read()
    code, formatted, _ = tcc("fmt", "-", text=text)
    if code:
        return "refused" if meaning(text)[0] else f"{path}: it means something and is refused"
    if squeezed(formatted) != squeezed(text.removeprefix(b"\xef\xbb\xbf")):
        return f"{path}: more than white space changed"
    if formatted != text and tcc("fmt", "-", text=formatted)[1] != formatted:
        return f"{path}: it is laid out differently again"
    if formatted != text and meaning(formatted) != meaning(text):
        return f"{path}: it means something else"
    if re.search(rb"[ \t]\n|\n\n\n|\r", formatted):
        return f"{path}: white space is left"
    if "/examples/" in path and formatted != text:
        return f"{path}: not in the canonical layout"
    return "kept"


paths = [os.path.join(folder, name) for top in ("bench", "docs", "examples", "python", "tests")
         for folder, _, names in os.walk(os.path.join(root, top)) for name in names if name.endswith(".tile")]
with ThreadPoolExecutor(2) as pool:
    results = list(pool.map(check, paths))
wrong = [r for r in results if r not in ("kept", "refused")]
print("\n".join(wrong))
print(f"{results.count('kept')} kept, {results.count('refused')} refused")
sys.exit(bool(wrong))
