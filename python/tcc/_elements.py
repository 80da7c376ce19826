"""Element types: tcc's names, and those of arrays.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import math
from typing import NamedTuple


class Element(NamedTuple):
    """An element type of the language."""

    name: str
    dtype: str
    """Its name in numpy with ml_dtypes, torch, jax and cupy."""
    bits: int
    overflow: float = math.inf
    """The magnitude from which on numbers round to infinity, of a type that scalars can have; WHOLE: they are whole."""

    def holds(self, number: float) -> bool:
        """Whether it can be a scalar's.

        >>> ELEMENTS["f16"].holds(0.1), ELEMENTS["f16"].holds(1e6), ELEMENTS["i32"].holds(2.5)
        (True, False, False)
        """
        if self.overflow == WHOLE:
            return number.is_integer() and int(number) in I32
        return math.isinf(number) or not abs(number) >= self.overflow

    @property
    def numbers(self) -> str:
        """What scalars can be, in words."""
        return f"a whole number from {I32[0]} to {I32[-1]}" if self.overflow == WHOLE else (
            f"a number below {self.overflow:.6g}")


WHOLE = -1.0
I32 = range(-2**31, 2**31)

ELEMENTS = {
    e.name: e
    for e in (
        Element("f16", "float16", 16, 65520), Element("bf16", "bfloat16", 16, 2.0**128 - 2.0**119),
        Element("f32", "float32", 32, 2.0**128 - 2.0**103), Element("f64", "float64", 64),
        Element("tf32", "float32", 32), Element("e4m3", "float8_e4m3fn", 8), Element("e5m2", "float8_e5m2", 8),
        Element("i8", "int8", 8), Element("u8", "uint8", 8), Element("i32", "int32", 32, WHOLE),
        Element("i4", "int4", 4), Element("u4", "uint4", 4))
}

PACKED = "uint8"
"""The dtype of an array with two elements of i4 or u4 in each byte, the first in the low half."""

# (code, bits) of DLPack 1.1
DLPACK = {(2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16", (0, 8): "int8",
          (0, 32): "int32", (1, 8): "uint8", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}

# of __cuda_array_interface__, without the byte order
TYPESTR = {"f2": "float16", "f4": "float32", "f8": "float64", "i1": "int8", "i4": "int32", "u1": "uint8"}

# of struct and the buffer protocol
FORMATS = {"e": "float16", "f": "float32", "d": "float64", "b": "int8", "i": "int32", "B": "uint8"}
