#!/usr/bin/env python3
"""Derives the polynomials of expand_math.c: for each, the coefficients with the least greatest
relative error of the whole function, by Remez's exchange, and that error after rounding to f32.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import math
import struct


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def evaluate(coefficients, u):
    r = 0.0
    for c in reversed(coefficients):
        r = r * u + c
    return r


def solve(rows):
    """Gaussian elimination with pivots; each row ends with its right-hand side."""
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / rows[i][i]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][k] * x[k] for k in range(i + 1, n))) / rows[i][i]
    return x


def remez(g, weight, lo, hi, degree):
    """The polynomial p of this degree with the least max |weight(u) * (p(u) - g(u))|."""
    n = degree + 2
    grid = [lo + (hi - lo) * (1 - math.cos(math.pi * i / 4000)) / 2 for i in range(4001)]
    wanted, weights = [g(u) for u in grid], [weight(u) for u in grid]
    nodes = [round(4000 * i / (n - 1)) for i in range(n)]
    for _ in range(30):
        rows = [[grid[i] ** k for k in range(degree + 1)] + [(-1) ** s / weights[i], wanted[i]]
                for s, i in enumerate(nodes)]
        p = solve(rows)[:-1]
        error = [w * (evaluate(p, u) - v) for u, v, w in zip(grid, wanted, weights)]
        # One extremum for each run of errors of one sign.
        extrema = []
        for i, e in enumerate(error):
            if extrema and (e > 0) == (error[extrema[-1]] > 0):
                if abs(e) > abs(error[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        while len(extrema) > n:
            extrema.pop(0 if abs(error[extrema[0]]) < abs(error[extrema[-1]]) else -1)
        if len(extrema) < n or extrema == nodes:
            break
        nodes = extrema
    p = [f32(c) for c in p]
    worst = max(abs(w * (evaluate(p, u) - v)) for u, v, w in zip(grid, wanted, weights))
    return p, worst


def show(name, form, fit):
    p, worst = fit
    print(f"{name}: {form}, relative error {worst:.1e}")
    print("   ", ", ".join(f"{c:.9g}" for c in p))


def odd(function, slope, limit, degree):
    """function(x) = x * (slope + u * p(u)), u = x * x, for |x| <= limit."""
    return remez(lambda u: (function(math.sqrt(u)) / math.sqrt(u) - slope) / u,
                 lambda u: u * math.sqrt(u) / function(math.sqrt(u)), 1e-6, limit * limit, degree)


def log_near_one(lo, hi, degree):
    """log(1 + f) = f + f * f * p(f), for lo <= f <= hi."""
    def series(f, first):  # of (log(1 + f) - …) near 0, where the closed forms cancel
        return sum((-1) ** (k + 1) * f ** (k - first) / k for k in range(first, first + 12))

    def rest(f):
        return series(f, 2) if abs(f) < 0.03 else (math.log1p(f) - f) / (f * f)

    def weight(f):
        return abs(f) / series(f, 1) if abs(f) < 0.03 else abs(f * f / math.log1p(f))

    return remez(rest, weight, lo, hi, degree)


def normal_tail(scale, degree):
    """exp(y * y / 2) * Phi(-y) = t * p(t), t = 1 / (1 + scale * y), for 0 <= y <= 14."""
    def w(t):
        y = (1 / t - 1) / scale
        return 0.5 * math.erfc(y / math.sqrt(2)) * math.exp(y * y / 2)

    return remez(lambda t: w(t) / t, lambda t: t / w(t), 1 / (1 + 14 * scale), 1, degree)


if __name__ == "__main__":
    show("tanh", "x + x u p(u), u = x^2, |x| < 0.65", odd(math.tanh, 1, 0.65, 4))
    show("erf", "x (2 / sqrt(pi) + u p(u)), u = x^2, |x| < 0.9",
         odd(math.erf, 2 / math.sqrt(math.pi), 0.9, 4))
    show("log", "f + f^2 p(f), f = x - 1, 0.606 < x < 1.648", log_near_one(-0.3945, 0.6497, 10))
    show("normal tail", "exp(-y^2 / 2) t p(t), t = 1 / (1 + 0.35 y)", normal_tail(0.35, 8))
