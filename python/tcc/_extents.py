"""Dimensions that are computed of others: "W + P - 1".

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import ast
import functools
from typing import Any, Mapping


@functools.lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _value(e: ast.expr, dims: Mapping[str, Any]) -> Any:
    if isinstance(e, ast.Name):
        return dims[e.id]
    if isinstance(e, ast.Constant):
        return e.value
    if isinstance(e, ast.UnaryOp):
        return -_value(e.operand, dims)
    assert isinstance(e, ast.BinOp)
    x, y = _value(e.left, dims), _value(e.right, dims)
    if isinstance(e.op, ast.Div):  # rounded down; a divisor below 1 counts as 1
        return x // y if isinstance(e.right, ast.Constant) else x // max(y, 1)
    return x + y if isinstance(e.op, ast.Add) else x - y if isinstance(e.op, ast.Sub) else x * y


def names_in(text: str) -> list[str]:
    """The dimensions of which one is computed."""
    return [e.id for e in ast.walk(_parse(text)) if isinstance(e, ast.Name)]


def extent_of(wanted: str | int, dims: Mapping[str, Any]) -> Any:
    """What a dimension of an argument must have where the kernel's have these extents, which may be symbolic."""
    return wanted if isinstance(wanted, int) else dims[wanted] if wanted in dims else _value(_parse(wanted), dims)
