"""Counts conflicts of LDS banks in products of every layout, in several types, waves and tiles: banks.py DIR

Reads target-level IR (tcc --emit=tir), computes the address that each lane gives to each amdgcn.ds.load
and amdgcn.ds.store, and counts cycles: 128 bytes at a time, those of consecutive lanes, take as many as
there are different words in the bank that has most of them. 32 banks have words in turn. The factor by
which that is more than without conflicts must be 1 for loads, and for stores, too, where the rows of a
tile are a power of two; MOST for others, of which 8 lanes write to two panels.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import collections
import itertools
import os
import re
import subprocess
import sys

BANKS, WORD_BYTES, BYTES_A_CYCLE = 32, 4, 128
BITS = {"f16": 16, "bf16": 16, "i8": 8, "u8": 8, "e4m3": 8, "e5m2": 8}

COMPUTE = {
    "arith.add": lambda a, b: a + b, "arith.sub": lambda a, b: a - b,
    "arith.mul": lambda a, b: a * b, "arith.div": lambda a, b: a // b,
    "arith.rem": lambda a, b: a % b, "arith.and": lambda a, b: a & b,
    "arith.or": lambda a, b: a | b, "arith.xor": lambda a, b: a ^ b,
    "arith.shl": lambda a, b: a << b, "arith.shr": lambda a, b: a >> b,
    "arith.min": min, "arith.max": max,
}
OP = re.compile(r"\s*(?:%(\S+) = )?((?:arith|amdgcn|vec)\.\S+)\s?([^{:]*)(?:\{(.*?)\})?(?: ?: (\S+))?")


class Function:
    def __init__(self, head, lines):
        self.wave = int(re.search(r"wave = (\d+)", head)[1])
        self.block = int(re.search(r"block = (\d+)", head)[1])
        self.ops, self.accesses, self.known = {}, [], {}
        for line in lines:
            if line.lstrip().startswith("^("):
                for name, type_ in re.findall(r"%([\w.]+): ([^,)]+)", line):
                    self.ops[name] = (None, [], {}, type_)
            op = OP.match(line)
            if not op:
                continue
            result, name, operands, attrs, type_ = op.groups()
            operands = re.findall(r"%([\w.]+)", operands)
            attrs = dict(re.findall(r"(\w+) = (-?\w+)", attrs or ""))
            if result:
                self.ops[result] = (name, operands, attrs, type_)
            if name in ("amdgcn.ds.load", "amdgcn.ds.store"):
                self.accesses.append((name, operands, attrs, type_))

    def lanes(self, value):
        """The numbers of all threads."""
        if value not in self.known:
            name, operands, attrs, _ = self.ops[value]
            if name == "arith.const":
                numbers = [int(attrs["value"])] * self.block
            elif name == "amdgcn.tid":
                numbers = list(range(self.block))
            elif name == "amdgcn.lds_base":
                numbers = [0] * self.block
            elif name == "amdgcn.readfirstlane":
                of = self.lanes(operands[0])
                numbers = [of[i - i % self.wave] for i in range(self.block)]
            else:
                numbers = [COMPUTE[name](a, b) for a, b in zip(*map(self.lanes, operands))]
            self.known[value] = numbers
        return self.known[value]

    def bytes_of(self, access):
        name, operands, _, type_ = access
        if name == "amdgcn.ds.store":
            type_ = self.ops[operands[1]][3]
        elem, n = re.match(r"vec<(\w+)\[(\d+)\]>", type_).groups()
        return BITS.get(elem, 32) * int(n) // 8

    def factor(self, name):
        """Cycles of all accesses of this name, compared with as many without conflicts."""
        cycles = groups = 0
        for access in self.accesses:
            if access[0] != name:
                continue
            size = self.bytes_of(access)
            at = [x + int(access[2].get("offset", 0)) for x in self.lanes(access[1][0])]
            together = BYTES_A_CYCLE // size
            for first in range(0, self.block, together):
                words = collections.defaultdict(set)
                for x in at[first:first + together]:
                    for word in range(x // WORD_BYTES, (x + size) // WORD_BYTES):
                        words[word % BANKS].add(word)
                cycles += max(map(len, words.values()))
                groups += 1
        return cycles / groups if groups else 0


def functions(text):
    """{name: Function} of those with LDS."""
    found = {}
    for part in re.split(r"^func ", text, flags=re.M)[1:]:
        head, *lines = part.split("\n")
        name = re.match(r"@(\w+)", head)[1]
        if "amdgcn.ds." in part:
            found[name] = Function(head, lines)
    return found


LAYOUTS = {"nn": ("M, K", "K, N"), "nt": ("M, K", "N, K"), "tn": ("K, M", "K, N"), "tt": ("K, M", "N, K")}
TYPES = [("gfx1100", "f16"), ("gfx1100", "i8"), ("gfx1201", "bf16"), ("gfx1201", "e4m3")]
TILES = ["", "tile m 64, n 64;", "tile m 256, n 64;", "tile m 96, n 48;", "tile m 32, n 160;"]
MOST = 1.34


def compile_product(folder, target, type_, wave, layout, tile):
    """The functions of a product."""
    a, b = LAYOUTS[layout]
    acc = "i32" if type_ == "i8" else "f32"
    path = os.path.join(folder, "_".join((target, type_, str(wave), layout)))
    with open(path + ".tile", "w", encoding="utf-8") as file:
        file.write(f"kernel f(A: {type_}[{a}], B: {type_}[{b}]) -> (C: {acc}[M, N])\n"
                   f"{{ C[m, n] = sum(k) A[{a.lower()}] * B[{b.lower()}]; }}\n"
                   f"schedule f for {target} {{ {tile} wave {wave}; }}\n")
    subprocess.run(["tcc", path + ".tile", f"--target={target}", "--emit=tir", "-o", path + ".tir"],
                   check=True)
    with open(path + ".tir", encoding="utf-8") as file:
        return functions(file.read())


def main(folder):
    wrong = False
    for (target, type_), tile, layout in itertools.product(TYPES, TILES, LAYOUTS):
        for wave in (32, 64) if not tile else (32,):
            found = compile_product(folder, target, type_, wave, layout, tile)
            for name in ("f", "f__direct"):
                stores, loads = map(found[name].factor, ("amdgcn.ds.store", "amdgcn.ds.load"))
                odd = any(int(n) & int(n) - 1 for n in re.findall(r"\d+", tile))
                bad = loads != 1 or stores > (MOST if odd else 1)
                wrong |= bad
                if bad:
                    print(f"{name} {target} {type_} wave {wave} {layout} {tile}: "
                          f"stores {stores:.2f}, loads {loads:.2f}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
