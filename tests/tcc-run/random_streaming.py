"""Draws sums whose terms need other reductions of their row, with a factor and without one, computes them by loops over
tiles, and compares with numpy. The verifier refuses factors that were changed. random_streaming.py STEM FIRST_SEED END_SEED

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import re
import subprocess
import sys

import numpy as np

stem, first, end = sys.argv[1], *map(int, sys.argv[2:])
TARGETS = ["sm_90a", "sm_75", "gfx1100"]
# What the language calls it, and numpy of X, W (M, N) and g (M, 1).
REDUCTIONS = [
    ("max(n) X[m, n]", lambda X, W, g: X.max(1, keepdims=True)),
    ("min(n) X[m, n]", lambda X, W, g: X.min(1, keepdims=True)),
    ("max(n) W[m, n]", lambda X, W, g: W.max(1, keepdims=True)),
    ("(sum(n) W[m, n]) / 64.0", lambda X, W, g: W.sum(1, keepdims=True) / 64),
    ("abs(min(n) W[m, n])", lambda X, W, g: abs(W.min(1, keepdims=True))),
]
FACTORS = [
    ("", lambda X, W, g: 1),
    ("W[m, n] * ", lambda X, W, g: W),
    ("(1 / (1 + abs(X[m, n]))) * ", lambda X, W, g: 1 / (1 + abs(X))),
    ("where(X[m, n] > W[m, n], 1.0, 0.25) * ", lambda X, W, g: np.where(X > W, 1, 0.25)),
]


def bf16(x):
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32).astype(np.float64)


# Of an exponential e: whether terms of this form are multiplied by one factor when e is.
FORMS = [
    ("{e}", True, lambda e: e),
    ("-({e}) / 3.0", True, lambda e: -e / 3),
    ("({e}) * ({e})", True, lambda e: e * e),
    ("f32(bf16({e}))", True, bf16),
    ("f32(bf16({e})) * 1.5", True, lambda e: bf16(e) * 1.5),
    ("bf16({e} + 1.0)", False, lambda e: bf16(e + 1)),
    ("{e} + 1.0", False, lambda e: e + 1),
    ("({e}) * ({e}) + ({e})", False, lambda e: e * e + e),
]


def draw(rng):
    text, value = "0.5 * X[m, n]", lambda X, W, g: 0.5 * X
    if rng.random() < 0.5:
        text, value = text + " + W[m, n]", lambda X, W, g, v=value: v(X, W, g) + W
    for i in rng.permutation(len(REDUCTIONS))[: rng.integers(1, 4)]:
        sign = rng.choice(["-", "+"])
        scale = rng.choice(["", "g[m] * ", "0.25 * "])
        name, reduce = REDUCTIONS[i]
        text += f" {sign} {scale}({name})"
        by = {"": lambda g: 1, "g[m] * ": lambda g: g, "0.25 * ": lambda g: 0.25}[scale]
        value = (lambda X, W, g, v=value, r=reduce, b=by, s=sign: v(X, W, g) + (1 if s == "+" else -1) * b(g) * r(X, W, g))
    factor, of = FACTORS[rng.integers(len(FACTORS))]
    form, has_factor, term = FORMS[rng.integers(len(FORMS))]
    terms = form.format(e=f"{factor}exp({text})")
    return terms, has_factor, lambda X, W, g: term(of(X, W, g) * np.exp(value(X, W, g)))


# Of what is between a sum and tensor.rescale, which has the factor, the first of each kind.
CHANGES = [
    ("another base", r"math\.exp ", "math.exp2 "),
    ("the inverse", r"arith\.sub (%\w+), (%\w+)", r"arith.sub \2, \1"),
    ("a sum for a difference", r"arith\.sub ", "arith.add "),
    ("what is for what was", r"(%\w+) = tensor\.before (%\w+)", r"%new = tensor.before \2 : field<f32[m]>\n  \1 = arith.add \2, \2"),
]


def check_changes(ir, seed, terms):
    """Each change of the factor makes the verifier refuse it, and nothing else."""
    for name, what, by in CHANGES:
        factor = re.compile(r"(kind = sum[^\n]*\n)((?:(?!kind =|\n}).)*?)( = tensor\.rescale)", re.S)
        changed = factor.sub(lambda m, what=what, by=by: m[1] + re.sub(what, by, m[2], count=1) + m[3], ir)
        if changed == ir:
            continue
        with open(f"{stem}.tir", "w", encoding="utf-8") as file:
            file.write(changed)
        said = subprocess.run(["tcc-opt", f"{stem}.tir", "-o", f"{stem}.out"], check=False, capture_output=True, text=True)
        if said.returncode != 1 or "'tensor.rescale': the terms of a are not" not in said.stderr:
            sys.exit(f"seed {seed}, sum(n) {terms}: {name} is accepted, or refused for another reason:\n{said.stderr}")
        yield name


n_streamed, refused = 0, set()
for seed in range(first, end):
    rng = np.random.default_rng(seed)
    terms, has_factor, value = draw(rng)
    M, N, target = int(rng.integers(1, 5)), int(rng.integers(60, 400)), TARGETS[seed % len(TARGETS)]
    with open(f"{stem}.tile", "w", encoding="utf-8") as file:
        used = [f"{x}: f32[M{', N' * (x != 'g')}]" for x in "XWg" if f"{x}[m" in terms]
        file.write(f"kernel f({', '.join(used)}) -> (S: f32[M])\n{{\n"
                   f"    S[m] = sum(n) ({terms});\n}}\nschedule f for {target} {{ tile n 64; }}\n")
    X, W = (rng.normal(size=(M, N)).astype(np.float32) for _ in range(2))
    g = rng.normal(size=M).astype(np.float32)
    for name, x in ("X", X), ("W", W), ("g", g):
        np.save(f"{stem}.{name}.npy", x)
    said = subprocess.run(
        ["tcc-run", f"{stem}.tile", "--kernel=f", f"--target={target}", "--on=interp", "--size", f"M={M},N={N}",
         *(f"--input={name}={stem}.{name}.npy" for name in "XWg" if f"{name}[m" in terms), f"--output=S={stem}.S.npy"],
        check=False, capture_output=True, text=True)
    if said.returncode:
        sys.exit(f"seed {seed}, {target}, sum(n) {terms}:\n{said.stderr}")
    expected = value(X.astype(np.float64), W.astype(np.float64), g.astype(np.float64)[:, None])
    found, scale = np.load(f"{stem}.S.npy"), abs(expected).sum(1)
    rounding = 8e-3 if "bf16" in terms else 2e-6
    if not np.all(abs(found - expected.sum(1)) <= rounding * scale):
        sys.exit(f"seed {seed}, {target}, sum(n) {terms} is {found} and not {expected.sum(1)}")
    passes = subprocess.run(["tcc", f"{stem}.tile", f"--target={target}", "--tiles=1", "--print-after=stream", "--emit=tir",
                             "-o", f"{stem}.tir"], check=True, capture_output=True, text=True).stderr
    if ("tensor.rescale" in passes) != has_factor:
        sys.exit(f"seed {seed}, {target}, sum(n) {terms}: there is {'a' if has_factor else 'no'} factor")
    n_streamed += has_factor
    if has_factor:
        refused.update(check_changes(passes[passes.index("\nfunc "):], seed, terms))
print(f"{end - first} sums are right; {n_streamed} are kept in step; refused: {', '.join(sorted(refused))}")
