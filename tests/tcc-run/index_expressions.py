"""Evaluates kernels of index_expressions.tile term by term and compares: index_expressions.py PROGRAM.tile STEM

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import subprocess
import sys

import numpy as np

program, stem = sys.argv[1:]
draw = np.random.default_rng(7)
inf = np.inf


def floats(*dims):
    return draw.integers(-8, 9, dims).astype(np.float32)


def at(x, *place):
    """An element, 0 outside."""
    inside = all(0 <= p < n for p, n in zip(place, x.shape))
    return x[place] if inside else x.dtype.type(0)


def is_in(x, *place):
    return all(0 <= p < n for p, n in zip(place, x.shape))


def table(dims, value, dtype=np.float32):
    r = np.zeros(dims, dtype)
    for place in np.ndindex(*dims):
        r[place] = value(*place)
    return r


def run(target, kernel, dims, inputs, outputs, scalars=()):
    command = ["tcc-run", program, "--kernel", kernel, "--target", target, "--on=interp", "--size",
               ",".join(f"{name}={n}" for name, n in dims.items())]
    for name, x in inputs.items():
        np.save(f"{stem}.{name}.npy", x)
        command += ["--input", f"{name}={stem}.{name}.npy"]
    for name in outputs:
        command += ["--output", f"{name}={stem}.out.{name}.npy"]
    for name, value in scalars:
        command += ["--set", f"{name}={value}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name, expected in outputs.items():
        found = np.load(f"{stem}.out.{name}.npy")
        if not np.array_equal(found, expected, equal_nan=True):
            sys.exit(f"{target}: {name} of {kernel} is\n{found}\nand not\n{expected}")


def convolution(target):
    x, w = floats(2, 9, 5), floats(3, 5, 4)
    w[0, 0, 0] = inf  # which no element outside x may meet
    x[:, 1::2, 0] = 1
    y = table((2, 5, 4), lambda b, p, f: sum(x[b, 2 * p + r - 1, c] * w[r, c, f] for r in range(3) for c in range(5)
                                             if is_in(x, b, 2 * p + r - 1, c)))
    run(target, "convolution", dict(B=2, H=9, C=5, R=3, P=5, F=4), {"x": x, "w": w}, {"y": y})


def pool(target):
    x = -1 - np.abs(floats(5, 6))
    y = table((4, 4), lambda p, q: max([x[2 * p + r, 2 * q + s] for r in range(3) for s in (-1, 0, 1)
                                        if is_in(x, 2 * p + r, 2 * q + s)], default=-inf))
    run(target, "pool", dict(H=5, W=6, P=4, Q=4), {"x": x}, {"y": y})


def windows(target):
    k, w, reach = floats(14, 8), floats(9), 3

    def js(i):
        return [j for j in range(14) if j <= i + 5 and j > i - reach and j % 4 != 2]

    run(target, "windows", dict(S=9, T=14, D=8), {"K": k, "w": w},
        {"O": table((9, 8), lambda i, d: sum(k[j, d] * w[i] for j in js(i))),
         "n": table((9,), lambda i: sum(js(i)), np.int32)}, [("W", reach)])


def experts(target):
    x, w, start = floats(9, 5), floats(3, 5, 7), np.array([0, 2, 2, 8], np.int32)
    y = table((9, 7), lambda t, n: sum(x[t, k] * w[e, k, n] for e in range(3) for k in range(5)
                                       if start[e] <= t < start[e + 1]))
    run(target, "experts", dict(T=9, K=5, E=3, N=7, E1=4), {"X": x, "W": w, "start": start}, {"Y": y})


def paged(target):
    x, page = floats(256, 8), np.array([[3, 0, 2], [1, -1, 4]], np.int32)
    y = table((2, 200, 8), lambda b, j, d: at(x, at(page, b, j // 64) * 64 + j % 64, d))
    run(target, "paged", dict(P=256, D=8, B=2, Q=3, J=200), {"X": x, "page": page}, {"Y": y})


def numbers(target):
    x, i = floats(4, 8), np.array([-7, 5, -1, 6], np.int32)
    run(target, "numbers", dict(M=4, K=8), {"X": x, "i": i},
        {"Y": table((4,), lambda m: x[m].sum() / 8),
         "Z": table((4, 8), lambda m, k: (i[m] - m) // (k + 1) + (i[m] - k) % 3 + 4, np.int32),
         "V": table((4, 8), lambda m, k: x[m, k] + 0.5 * m - k // 2)})


def places(target):
    x = floats(9, 9)
    run(target, "places", dict(N=9), {"X": x},
        {"d": np.diag(x).copy(), "z": table((9,), lambda n: x[2, n] + x[n, 0] + x[n, 8 - n]),
         "t": table((9, 9), lambda m, n: at(x, m * n, (n + m) // 2))})


def triangle(target):
    x, v = floats(7, 9), floats(9)

    def tail(m, n):
        return sum(v[n + k] * x[m, k] for k in range(9) if n + k < 9)

    run(target, "triangle", dict(M=7, N=9), {"X": x, "x": v},
        {"Y": table((7, 9), lambda m, n: x[m, n] if n < m and m != 3 else 0),
         "l": table((7,), lambda m: min([x[m, n] + tail(m, n) for n in range(9) if n < m], default=inf))})


def shifted(target):
    x, row = floats(9), np.array([3, -1, 9, 8, 0, 0, 7, 100, 2], np.int32)
    t = x * x + 1
    a = table((9,), lambda i: 2 * at(t, i + 1))
    run(target, "shifted", dict(N=9), {"x": x, "row": row},
        {"y": table((9,), lambda i: at(t, i + 1) + at(t, i - 1) * t[8 - i]),
         "z": table((9,), lambda i: at(t, row[i]) + t[0]), "u": table((9,), lambda i: at(a, 2 * i) + t[i // 2])})


def inner(target):
    x, a = floats(6), floats(6, 6)
    r = table((6,), lambda n: sum(x[k] * x[n + k] for k in range(6) if n + k < 6))
    t = a * x
    run(target, "inner", dict(N=6), {"x": x, "A": a},
        {"y": table((6,), lambda n: x[n // 2] - x.max()), "w": table((6,), lambda k: at(r, k + 1)),
         "d": table((6,), lambda m: t[m, m // 2] + t[m, m] + sum(t[n, m] * t[m, n + 1] for n in range(5)))})


def terms(target):
    x, w = floats(9), floats(5)
    t = x * x + 1
    reached = [[(t[i + j - 2], w[j]) for j in range(5) if is_in(t, i + j - 2)] for i in range(9)]
    run(target, "terms", dict(N=9, K=5), {"x": x, "w": w},
        {"y": table((9,), lambda i: sum(p * q for p, q in reached[i])),
         "m": table((9,), lambda i: min(p + q for p, q in reached[i]))})


def counts(target):
    x = floats(9)
    run(target, "counts", dict(N=9), {"x": x},
        {"y": 4 * x, "z": table((9,), lambda i: i - 12, np.int32),
         "w": table((9,), lambda i: x[:i + 1].sum() - (i + 1) + 2 * x[i])})


def wide(target):
    x, y = floats(5), floats(3)
    run(target, "wide", dict(N=5, P=3, M=7), {"x": x, "y": y},
        {"z": table((7,), lambda m: sum(x[s // 2 + m] * y[s % 3] for s in range(10) if s // 2 + m < 5)),
         "c": table((7,), lambda m: m + sum(t % 2 for t in range(1, 46)) + 9, np.int32)})


def strips(target):
    x, s, r = floats(2, 10, 22), floats(3), floats(3)
    run(target, "strips", dict(B=2, H=5, W=20, P=3), {"X": x, "s": s, "r": r},
        {"Y": table((2, 5, 20), lambda b, h, w: s[w // 8] * sum(x[b, 2 * h + 1, w + p] * r[p] for p in range(3)))})


def group_norm(target):
    x = floats(11, 9)
    total = [x[4 * g:4 * g + 4].sum() for g in range(3)]
    run(target, "group_norm", dict(C=11, H=9), {"X": x}, {"Y": table((11, 9), lambda k, h: x[k, h] - total[k // 4])})


def ranges(target):
    x = floats(21)

    def t(g):
        return at(x, 2 * g) + g if 2 <= g <= 9 else 0

    best = max(range(7, 14), key=lambda i: (x[i], -i))
    run(target, "ranges", dict(N=7, M=5), {"X": x},
        {"y": table((5, 7), lambda m, k: x[k + 7] * m),
         "z": table((5,), lambda m: m + sum(x[i] * i for i in range(7, 14))),
         "b": table((5,), lambda m: m + best, np.int32),
         "w": table((21,), lambda n: t(2 * n) + t(n // 2) + x[n])})


def cached(target):
    k, page, x = floats(3, 4, 9).astype(np.float16), np.array([2, 0, 7, 1, -1], np.int32), floats(9)
    run(target, "cached", dict(P=3, U=5, D=9), {"K": k, "page": page, "x": x},
        {"O": table((9,), lambda e: x[e] + sum(at(k, page[j // 4], j % 4, e) for j in range(20)))})


def ranked(target):
    x = floats(9)
    order = np.argsort(x, kind="stable")
    run(target, "ranked", dict(N=9), {"x": x}, {"sorted": x[order], "rank": np.argsort(order).astype(np.int32)})


def widths(target):
    x = floats(8, 22)
    run(target, "widths", dict(M=4, W=20, P=3), {"X": x},
        {"Y": x - x.max(axis=0), "z": x[::2, 3] + x[1::2, :3].sum(axis=1)})


for target in ("sm_90a", "gfx1100"):
    for kernel in (convolution, pool, windows, experts, paged, numbers, places, triangle, shifted, inner, terms,
                   counts, wide, strips, group_norm, ranges, cached, ranked, widths):
        kernel(target)
