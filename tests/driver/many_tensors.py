"""Prints a kernel with many tensors: many_tensors.py pairs|sums|outputs|shared N

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import sys

kind, n = sys.argv[1], int(sys.argv[2])
outputs = kind == "outputs"
pairs = [f"A{i}[m, k] * B{i}[k, n]" for i in range(n)]
if kind == "shared":
    pairs = [f"A0[m, k] * B{i}[k, n]" for i in range(n)]
ins = ["A0: f16[M, K]", "B0: f16[K, N]"]
for i in range(1, 1 if outputs else n):
    ins += [f"B{i}: f16[K, N]"] + ([f"A{i}: f16[M, K]"] if kind != "shared" else [])
outs = [f"C{i}: f16[M, N]" for i in range(n if outputs else 1)]
print(f"kernel f({', '.join(ins)}) -> ({', '.join(outs)})\n{{")
if outputs:
    print("    acc[m, n] = sum(k) A0[m, k] * B0[k, n];")
    for i in range(n):
        print(f"    C{i}[m, n] = acc[m, n] * {i + 1};")
elif kind == "pairs":
    print(f"    C0[m, n] = sum(k) ({' + '.join(pairs)});")
else:
    print(f"    C0[m, n] = {' + '.join(f'(sum(k) {p})' for p in pairs)};")
print("}")
