"""Compiles kernels with long expressions; fails where one takes too much time, memory or code. Or writes one of them.

    long_expressions.py TCC FOLDER TARGET...
    long_expressions.py NAME LENGTH

Time is that of the processor, and its limit is ten times what is needed, since that grows on busy machines; memory does
not, and has a close limit. They are for growth with the square of a program, or with the elements that a thread has of
each of its values."""
import os
import subprocess
import sys

SECONDS, MEGABYTES, BYTES = 15, 380, 4 << 20

PRODUCT = """kernel f(A: f16[M, K], B: f16[K, N], X: f32[M, N]) -> (C: f32[M, N])
{{
    t0[m, n] = sum(k) A[m, k] * B[k, n];
{steps}    C[m, n] = t{n}[m, n] + X[m, n];
}}
"""
OPERAND = """kernel long_operand(A: f16[M, K], B: f16[K, N]) -> (C: f32[M, N])
{{
    t0[m, k] = A[m, k] + 0.5;
{steps}    C[m, n] = sum(k) f16(t{n}[m, k]) * B[k, n];
}}
"""
POINTWISE = """kernel f(X: f32[M, N]) -> (Y: f32[M, N])
{{
    t0[m, n] = X[m, n];
{steps}    Y[m, n] = t{n}[m, n];
}}
"""
ROWS = """kernel long_row(X: f16[M, N]) -> (Y: f32[M, N])
{{
    t0[m, n] = f32(X[m, n]);
{steps}    e[m, n] = exp(t{n}[m, n] - max(n) t{n}[m, n]);
    Y[m, n] = e[m, n] / sum(n) e[m, n];
}}
"""
SUM = """kernel f(X: f32[M, N]) -> (Y: f32[M])
{{
    t0[m, n] = X[m, n];
{steps}    Y[m] = sum(n) t{n}[m, n];
}}
"""
ATTENTION = """kernel f(Q: f16[M, D], K: f16[N, D], V: f16[N, D]) -> (O: f16[M, D])
{{
    t0[m, n] = sum(d) Q[m, d] * K[n, d];
{steps}    p[m, n] = exp(t{n}[m, n] - max(n) t{n}[m, n]);
    O[m, e] = (sum(n) p[m, n] * V[n, e]) / sum(n) p[m, n];
}}
"""


def program(form, term, n):
    at = "[m, k]" if form is OPERAND else "[m, n]"
    steps = "".join(f"    t{i + 1}{at} = {term.format(t=f't{i}{at}', i=i + 1)};\n" for i in range(n))
    return form.format(steps=steps, n=n)


CASES = {
    "additions": (PRODUCT, "{t} + {i}.5", 4000),
    "additions_of_operands": (OPERAND, "{t} + {i}.5", 4000),
    "additions_without_products": (POINTWISE, "{t} + {i}.5", 4000),
    "additions_of_rows": (ROWS, "{t} + {i}.5", 4000),
    "additions_of_terms": (SUM, "{t} + {i}.5", 4000),
    "additions_of_scores": (ATTENTION, "{t} + {i}.5", 4000),
    "more_lengths_of_rows": (ROWS, "{t} + {i}.5", 250),
    "exponentials": (PRODUCT, "exp({t} * 0.125)", 250),
    "gelu": (PRODUCT, "gelu({t})", 400),
    "gelu_of_operands": (OPERAND, "gelu({t})", 50),
    "gelu_without_products": (POINTWISE, "gelu({t})", 400),
    "tanh_without_products": (POINTWISE, "tanh({t})", 1000),
}


def compiles(tcc, name, target, folder):
    source, code = os.path.join(folder, "long.tile"), os.path.join(folder, "long.out")
    with open(source, "w") as f:
        f.write(program(*CASES[name]))
    kind = "ptx" if target.startswith("sm_") else "asm"
    child = subprocess.Popen([tcc, source, f"--target={target}", f"--emit={kind}", "-o", code])
    _, status, usage = os.wait4(child.pid, 0)
    size = 0 if status else os.path.getsize(code)
    seconds, megabytes = usage.ru_utime, usage.ru_maxrss / 1024
    print(f"{target} {name}: {seconds:.2f} s, {megabytes:.0f} MB, {size} bytes of code")
    return not status and seconds < SECONDS and megabytes < MEGABYTES and size < BYTES


if __name__ == "__main__":
    if sys.argv[1] in CASES:
        form, term, _ = CASES[sys.argv[1]]
        print(program(form, term, int(sys.argv[2])))
    else:
        good = [compiles(sys.argv[1], name, target, sys.argv[2]) for target in sys.argv[3:] for name in CASES]
        sys.exit(not all(good))
