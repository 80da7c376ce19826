"""Element types: tcc's names, and those of arrays.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

from typing import NamedTuple


class Element(NamedTuple):
    """An element type of the language."""

    name: str
    dtype: str
    """Its name in numpy with ml_dtypes, torch, jax and cupy."""
    bits: int


ELEMENTS = {
    e.name: e
    for e in (
        Element("f16", "float16", 16), Element("bf16", "bfloat16", 16), Element("f32", "float32", 32),
        Element("f64", "float64", 64),
        Element("tf32", "float32", 32), Element("e4m3", "float8_e4m3fn", 8), Element("e5m2", "float8_e5m2", 8),
        Element("i8", "int8", 8), Element("u8", "uint8", 8), Element("i32", "int32", 32),
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
