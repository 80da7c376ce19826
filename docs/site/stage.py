"""Makes the sources of the documentation's site: stage.py OUT, or stage.py --check.

The pages are those of NAV, where they are in the source tree. A link to a file that is not a page becomes one to
a page that shows the file, a link to a folder one to a list of what is in it. With --check nothing is kept:
every page of docs/ has to be in NAV, and every link has to lead somewhere.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FRONT = "README.md"
MANY = 20  # files of a folder, from where on they are named and not shown

NAV = [
    ("Getting started", ["docs/tutorial.md", "docs/tutorial-wmma.md", "docs/installing.md",
                         "docs/performance.md"]),
    ("Writing programs", ["docs/language.md", "docs/types.md", "docs/python.md", "docs/distributed.md", "docs/embedding.md",
                          "docs/ahead-of-time.md", "docs/tools.md", "docs/tuning.md", "docs/timeline.md",
                          "docs/interp.md", "docs/abi.md"]),
    ("The compiler", ["docs/passes.md", "docs/ir.md", "docs/ops.md", "docs/amd.md", "docs/machine.md",
                      "docs/protocol-checker.md"]),
    ("Evidence", ["docs/verification.md", "docs/testing.md", "tests/gpu/README.md", "docs/gpu-results.md",
                  "bench/README.md"]),
    ("Taking part", ["CONTRIBUTING.md", "docs/add-an-op.md", "docs/add-a-pass.md", "docs/add-a-target.md",
                     "SECURITY.md", "CHANGELOG.md"]),
]
PAGES = [FRONT] + [page for _, pages in NAV for page in pages]

# By the end of a file's name, or the language of a block, what Pygments calls it.
LANGUAGES = {".c": "c", ".h": "c", ".def": "c", ".py": "python", ".json": "json", ".tile": "tile", ".tir": "tir",
             ".txt": "cmake", "ebnf": "text", "console": "commands"}


def staged_name(page):
    return "index.md" if page == FRONT else page


def block_of(part):
    """A block of code as the site's Markdown has it: ```tile f.tile is one with a caption."""
    first, _, rest = part.partition("\n")
    info = first[3:].split()
    language = LANGUAGES.get(info[0], info[0]) if info else "text"
    caption = [f":caption: {word}" for word in info[1:] if "." in word]
    if not caption:
        return f"```{language}\n{rest}"
    return "\n".join([f"```{{code-block}} {language}", *caption, "", rest])


class Stage:
    def __init__(self, out):
        self.out = out
        self.shown = {}  # path of a file or folder that no page of NAV is: whether its page is written
        self.failed = False

    def error(self, page, words):
        print(f"{page}: error: {words}")
        self.failed = True

    def write(self, path, text):
        path = os.path.join(self.out, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def copy(self, path, to):
        to = os.path.join(self.out, to)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(os.path.join(ROOT, path), to)

    def page_of(self, path):
        """The staged page, or picture, of a path in the source tree; None when there is no such path."""
        there = os.path.join(ROOT, path)
        if path in PAGES:
            return staged_name(path)
        if os.path.isdir(there):
            readme = os.path.join(path, "README.md")
            if readme in PAGES:
                return readme
            self.shown.setdefault(path, False)
            return os.path.join(path, "files.md")
        if not os.path.isfile(there):
            return None
        if path.endswith(".svg"):
            self.copy(path, path)
            return path
        self.shown.setdefault(path, False)
        return path + ".md"

    def link(self, page, target):
        path, mark, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return target
        folder = os.path.dirname(page)
        to = self.page_of(os.path.normpath(os.path.join(folder, path)))
        if to is None:
            self.error(page, f"{target}: no such file")
            return target
        return os.path.relpath(to, folder or ".") + mark + anchor

    def stage_page(self, page):
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            parts = re.split(r"(^```.*?^```$)", file.read(), flags=re.M | re.S)
        for i, part in enumerate(parts):
            if i % 2:
                parts[i] = block_of(part)
            else:
                parts[i] = re.sub(r"\]\(([^)\s]+)\)", lambda m: f"]({self.link(page, m[1])})", part)
        if page == FRONT:
            for caption, pages in NAV:
                parts += [f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n", "\n".join(pages), "\n```\n"]
        self.write(staged_name(page), "".join(parts))

    def stage_file(self, path):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = file.read()
        language = LANGUAGES.get(os.path.splitext(path)[1], "text")
        self.write(path + ".md", f"---\norphan: true\nnosearch: true\n---\n# {os.path.basename(path)}\n\n`{path}`\n\n"
                                 f"````{language}\n{text.rstrip()}\n````\n")

    def stage_folder(self, path):
        files = []
        for folder, folders, names in os.walk(os.path.join(ROOT, path)):
            folders[:] = sorted(f for f in folders if not f.startswith((".", "__")))
            files += [os.path.relpath(os.path.join(folder, name), ROOT) for name in sorted(names)]
        lines = [f"---\norphan: true\nnosearch: true\n---\n# {path}\n"]
        for name in files:
            shows = len(files) <= MANY or name in PAGES or name in self.shown
            to = os.path.relpath(self.page_of(name), path) if shows else None
            lines.append(f"- [`{name}`]({to})" if to else f"- `{name}`")
        self.write(os.path.join(path, "files.md"), "\n".join(lines) + "\n")

    def run(self):
        for page in sorted(f"docs/{n}" for n in os.listdir(os.path.join(ROOT, "docs")) if n.endswith(".md")):
            if page not in PAGES:
                self.error(page, "is not in NAV of docs/site/stage.py")
        for page in PAGES:
            if os.path.isfile(os.path.join(ROOT, page)):
                self.stage_page(page)
            else:
                self.error("docs/site/stage.py", f"{page}: no such file")
        while False in self.shown.values():
            path = next(p for p, done in self.shown.items() if not done)
            self.shown[path] = True
            (self.stage_folder if os.path.isdir(os.path.join(ROOT, path)) else self.stage_file)(path)
        self.copy("docs/site/conf.py", "conf.py")
        self.copy("docs/site/site.css", "_static/site.css")
        return self.failed


def main(arguments):
    if arguments == ["--check"]:
        with tempfile.TemporaryDirectory() as out:
            return Stage(out).run()
    shutil.rmtree(arguments[0], ignore_errors=True)
    return Stage(arguments[0]).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
