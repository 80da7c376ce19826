"""Exceptions and diagnostics.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

from typing import NamedTuple


class Diagnostic(NamedTuple):
    """One message of the compiler or the runtime."""

    severity: str
    """``"note"``, ``"warning"`` or ``"error"``."""
    file: str
    line: int
    """From 1 on; 0: no location."""
    column: int
    """From 1 on, in bytes."""
    message: str
    text: str
    """As in a terminal: message, source line, caret."""


_COLOURS = {"error": "1;31", "warning": "1;35", "note": "1;36"}  # of terminals


class Error(Exception):
    """Base of all errors of this package."""


class ArgumentError(Error, TypeError):
    """A call does not match its kernel: the type, rank, shape, strides or device of an array, or a name."""


class LibraryError(Error):
    """libtcc or the driver failed: ``status`` is the name of the ``tcc_status``."""

    def __init__(self, status: str, diagnostics: tuple[Diagnostic, ...] = ()):
        self.status = status
        self.diagnostics = diagnostics
        super().__init__("".join(d.text for d in diagnostics).rstrip("\n") or status)


class CompileError(LibraryError):
    """A program has errors. The message contains all of them, with source line and caret.

    >>> import tcc
    >>> try:
    ...     tcc.jit("kernel f(A: f16[M, K]) -> (C: f16[M]) { C[m] = sum(k) A[m, j]; }")
    ... except tcc.CompileError as error:
    ...     print(error.diagnostics[0].message)
    ...     print(error.diagnostics[0].line, error.diagnostics[0].column)
    index 'k' is summed and does not occur in the sum
    1 52
    """

    def _render_traceback_(self) -> list[str]:
        """For IPython and notebooks: the text, with the messages in colour."""
        lines = []
        for d in self.diagnostics:
            message, *rest = d.text.rstrip("\n").split("\n")
            lines += [f"\x1b[{_COLOURS[d.severity]}m{message}\x1b[0m", *rest]
        return lines
