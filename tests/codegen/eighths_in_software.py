"""Conversions of 8-bit floats by integer arithmetic: eighths_in_software.py make TARGET e4m3|e5m2 writes IR that stores
every number of the type as f32, and many f32 numbers as the type; check TYPE reads what LLVM has made of their
constants, and compares it with the definition of the type.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import math
import re
import struct
import sys
from fractions import Fraction

FORMATS = {"e4m3": (3, 7, 0x7E), "e5m2": (2, 15, 0x7B)}  # bits of the mantissa, bias, largest number


def decode(kind, byte):
    mantissa, bias, largest = FORMATS[kind]
    magnitude, sign = byte & 0x7F, -1 if byte & 0x80 else 1
    if magnitude > largest:
        return sign * math.inf if kind == "e5m2" and magnitude == 0x7C else math.nan
    exponent, fraction = magnitude >> mantissa, magnitude & (1 << mantissa) - 1
    scale = Fraction(2) ** (max(exponent, 1) - bias - mantissa)
    return sign * float((fraction + (exponent > 0) * (1 << mantissa)) * scale)


def encode(kind, x):
    """The byte nearest to a float, or even in the middle; what is beyond the largest is infinite or, in e4m3, NaN."""
    _, _, largest = FORMATS[kind]
    sign = 0x80 if math.copysign(1, x) < 0 else 0
    if math.isnan(x):
        return sign | 0x7F
    numbers = [Fraction(decode(kind, b)) for b in range(largest + 1)]
    numbers.append(2 * numbers[-1] - numbers[-2])
    if math.isinf(x) or abs(Fraction(x)) >= numbers[-1]:
        return sign | largest + 1
    best = min(range(largest + 2), key=lambda b: (abs(numbers[b] - abs(Fraction(x))), b % 2))
    return sign | best


def as_f32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def f32_bits(kind):
    """Each number, what is in the middle between two, what is beside those, and what is far away."""
    bits = {0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001, 0x7FFFFFFF}
    numbers = sorted(x for x in (decode(kind, b) for b in range(0x80)) if math.isfinite(x))
    numbers.append(2 * numbers[-1] - numbers[-2])
    for low, high in zip(numbers, numbers[1:]):
        for x in (low, (low + high) / 2, high):
            (at,) = struct.unpack("<I", struct.pack("<f", x))
            bits |= {at, at + 1, max(at - 1, 0)}
    return sorted(bits | {b | 0x80000000 for b in bits})


def function(name, n, source, to, value):
    yield f"func @{name}(%Y: ptr<{to}[M]>, %offset: i64) {{block = 32}} {{"
    yield "  %yes = arith.const {value = 1} : i1"
    for i in range(n):
        yield f"  %b{i} = arith.const {{value = {value(i)}}} : vec<{source[1]}[1]>"
        yield f"  %x{i} = vec.bitcast %b{i} : vec<{source[0]}[1]>"
        yield f"  %y{i} = arith.cast %x{i} : vec<{to}[1]>"
        yield f"  nvvm.st.global %Y, %offset, %yes, %y{i} {{disp = {i}}}"
    yield "  return"
    yield "}"


def make(target, kind):
    bits = f32_bits(kind)
    yield f"module {{target = {target}}}"
    yield from function("widened", 256, (kind, "u8"), "f32", lambda i: i)
    yield from function("narrowed", len(bits), ("f32", "i32"), kind, lambda i: bits[i] - (bits[i] >> 31 << 32))


def stored(llvm, name):
    body = llvm.partition(f"@{name}(")[2].partition("\n}")[0]
    return [int(n) for n in re.findall(r"^ *store i(?:8|32) (-?\d+),", body, re.MULTILINE)]


def check(kind, llvm):
    failed = False
    wide, narrow, bits = stored(llvm, "widened"), stored(llvm, "narrowed"), f32_bits(kind)
    if len(wide) != 256 or len(narrow) != len(bits):
        sys.exit(f"{len(wide)} and {len(narrow)} numbers are stored, not 256 and {len(bits)}")
    for byte, number in enumerate(wide):
        is_, wants = as_f32(number & 0xFFFFFFFF), decode(kind, byte)
        if not (is_ == wants and math.copysign(1, is_) == math.copysign(1, wants) or is_ != is_ and wants != wants):
            print(f"{kind} {byte:#x} becomes {is_}, not {wants}")
            failed = True
    for at, number in zip(bits, narrow):
        is_, wants = number & 0xFF, encode(kind, as_f32(at))
        if is_ != wants:
            print(f"f32 {at:#x} becomes {kind} {is_:#x}, not {wants:#x}")
            failed = True
    print(f"{len(wide)} numbers widened, {len(narrow)} narrowed")
    return failed


if __name__ == "__main__":
    if sys.argv[1] == "make":
        print("\n".join(make(*sys.argv[2:])))
    else:
        sys.exit(check(sys.argv[2], sys.stdin.read()))
