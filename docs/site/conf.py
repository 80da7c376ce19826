"""The documentation as a site, by Sphinx: `./dev docs`. stage.py makes its sources.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from pygments.lexer import RegexLexer, bygroups, using, words
from pygments.lexers.shell import BashLexer
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, Punctuation, String, Text

project = "tcc"
html_title = "tcc"
root_doc = "index"
extensions = ["myst_parser"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = html_show_copyright = False
html_copy_source = False
suppress_warnings = ["misc.highlighting_failure"]  # of blocks with a …
highlight_language = "text"
smartquotes = False
pygments_style, pygments_dark_style = "tango", "github-dark"

myst_heading_anchors = 4

ELEMENTS = "f16 bf16 tf32 f32 f64 e4m3 e5m2 i1 i8 u8 i4 u4 i32 i64".split()


class TileLexer(RegexLexer):
    name, aliases = "tile", ["tile"]
    tokens = {
        "root": [
            (r"//.*?$", Comment.Single),
            (r"/\*(.|\n)*?\*/", Comment.Multiline),
            (words("kernel schedule const for inout strided sum".split(), suffix=r"\b"), Keyword),
            (words(ELEMENTS, suffix=r"\b"), Keyword.Type),
            (r"[A-Za-z_]\w*(?=\()", Name.Function),
            (r"[A-Za-z_]\w*", Name),
            (r"\d+(\.\d+)?(e[-+]?\d+)?", Number),
            (r"[-+*/=<>!]+", Operator),
            (r"[\[\](){}:;,.]", Punctuation),
            (r"\s+|.", Text),
        ]
    }


class IrLexer(RegexLexer):
    name, aliases = "tir", ["tir"]
    tokens = {
        "root": [
            (r"//.*?$", Comment.Single),
            (r'"[^"\n]*"', String),
            (r"loc\([\d:]+\)", Comment),
            (words(("module", "func", "return"), suffix=r"\b"), Keyword),
            (r"[a-z]+\.[a-z_.]+", Name.Function),
            (r"%\w+", Name.Variable),
            (r"@\w+", Name.Class),
            (words("tensor tile field vec smem ring ptr".split(), suffix=r"(?=<)"), Keyword.Type),
            (words(ELEMENTS, suffix=r"\b"), Keyword.Type),
            (r"\d+(\.\d+)?", Number),
            (r"[A-Za-z_]\w*", Name),
            (r"\s+|.", Text),
        ]
    }


class CommandsLexer(RegexLexer):
    """Commands and what they print, in which '%' is not a prompt."""

    name, aliases = "commands", ["commands"]
    tokens = {
        "root": [
            (r"^([$>] )(.*\n)", bygroups(Generic.Prompt, using(BashLexer))),
            (r".*\n", Generic.Output),
        ]
    }


def setup(app):
    app.add_lexer("commands", CommandsLexer)
    app.add_lexer("tile", TileLexer)
    app.add_lexer("tir", IrLexer)
