"""Counts conflicts of shared memory's banks in products of every layout, in several types, waves and tiles: banks.py DIR

Reads target-level IR (tcc --emit=tir), computes the address that each lane gives to each load, store and copy, and
counts cycles: what lanes that are served together access takes as many as there are different words in the bank that
has most of them. 32 banks have words in turn. The factor by which that is more than the words need must be 1 for loads,
and for stores, too, where the rows of a tile are a power of two; MOST for others, of which 8 lanes write to two panels.
Of f64 16 bytes are half of a panel's line, and stored at half the speed so that what is read, many times as much, is not.

AMD's GPUs serve consecutive lanes that access 128 bytes. So do NVIDIA's, and twice as many lanes at once if each of
them reads what its neighbour or the one two further does.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import collections
import itertools
import os
import re
import subprocess
import sys

BANKS, WORD_BYTES, BYTES_A_CYCLE = 32, 4, 128
BITS = {"f64": 64, "f16": 16, "bf16": 16, "i8": 8, "u8": 8, "e4m3": 8, "e5m2": 8}

COMPUTE = {
    "arith.add": lambda a, b: a + b, "arith.sub": lambda a, b: a - b,
    "arith.mul": lambda a, b: a * b, "arith.div": lambda a, b: a // b,
    "arith.rem": lambda a, b: a % b, "arith.and": lambda a, b: a & b,
    "arith.or": lambda a, b: a | b, "arith.xor": lambda a, b: a ^ b,
    "arith.shl": lambda a, b: a << b, "arith.shr": lambda a, b: a >> b,
    "arith.min": min, "arith.max": max,
}
LOADS, STORES = ("amdgcn.ds.load", "nvvm.ld.shared"), ("amdgcn.ds.store", "nvvm.st.shared", "nvvm.cp.async")
OP = re.compile(r"\s*(?:%(\S+) = )?((?:arith|amdgcn|nvvm|vec)\.\S+)\s?([^{:]*)(?:\{(.*?)\})?(?: ?: (\S+))?")


class Function:
    def __init__(self, head, lines):
        wave = re.search(r"wave = (\d+)", head)
        self.wave, self.is_amd = int(wave[1]) if wave else 32, bool(wave)
        self.block = int(re.search(r"block = (\d+)", head)[1])
        self.ops, self.accesses, self.known, self.cycles = {}, [], {}, {}
        for line in lines:
            if line.lstrip().startswith("^("):
                for name, type_ in re.findall(r"%([\w.]+): ([^,)]+)", line):
                    self.ops[name] = ("argument", [], {}, type_)
            op = OP.match(line)
            if not op:
                continue
            result, name, operands, attrs, type_ = op.groups()
            operands = re.findall(r"%([\w.]+)", operands)
            attrs = dict(re.findall(r"(\w+) = (-?\w+)", attrs or ""))
            if result:
                self.ops[result] = (name, operands, attrs, type_)
            if name in LOADS + STORES:
                self.accesses.append((name, operands, attrs, type_))

    def lanes(self, value):
        """The numbers of all threads."""
        if value not in self.known:
            name, operands, attrs, _ = self.ops[value]
            if name == "arith.const":
                numbers = [int(attrs["value"])] * self.block
            elif name in ("amdgcn.tid", "nvvm.tid"):
                numbers = list(range(self.block))
            elif name in ("amdgcn.lds_base", "nvvm.smem_base", "argument"):
                numbers = [0] * self.block
            elif name in ("amdgcn.readfirstlane", "nvvm.uniform"):
                of = self.lanes(operands[0])
                numbers = [of[i - i % self.wave] for i in range(self.block)]
            else:
                numbers = [COMPUTE[name](a, b) for a, b in zip(*map(self.lanes, operands))]
            self.known[value] = numbers
        return self.known[value]

    def bytes_of(self, access):
        name, operands, attrs, type_ = access
        if "bytes" in attrs:
            return int(attrs["bytes"])
        if name in STORES:
            type_ = self.ops[operands[1]][3]
        elem, n = re.match(r"vec<(\w+)\[(\d+)\]>", type_).groups()
        return BITS.get(elem, 32) * int(n) // 8

    def lanes_together(self, name, at, size):
        """How many lanes are served at once."""
        few = BYTES_A_CYCLE // size
        pairs = all(x in (at[i ^ 1], at[i ^ 2]) for i, x in enumerate(at))
        return min(self.wave, 2 * few if pairs and name in LOADS and not self.is_amd else few)

    def factor(self, names):
        """Cycles of all accesses of these names, compared with as many without conflicts."""
        cycles = least = 0
        for access in self.accesses:
            if access[0] not in names:
                continue
            size = self.bytes_of(access)
            at = [x + int(access[2].get("offset", 0)) for x in self.lanes(access[1][0])]
            # Whole words further, other banks serve the lanes in as many cycles.
            base = at[0] - at[0] % WORD_BYTES
            pattern = (access[0] in LOADS, size, tuple(x - base for x in at))
            if pattern not in self.cycles:
                self.cycles[pattern] = self.cycles_of(access[0], at, size)
            cycles += self.cycles[pattern][0]
            least += self.cycles[pattern][1]
        return cycles / least if least else 0

    def cycles_of(self, name, at, size):
        """Cycles of an access, and of one without conflicts."""
        cycles = least = 0
        together = self.lanes_together(name, at, size)
        for first in range(0, self.block, together):
            words = collections.defaultdict(set)
            for x in at[first:first + together]:
                for word in range(x // WORD_BYTES, (x + size) // WORD_BYTES):
                    words[word % BANKS].add(word)
            cycles += max(map(len, words.values()))
            least += -(-sum(map(len, words.values())) // BANKS)
        return cycles, least


def functions(text):
    """{name: Function} of those with shared memory."""
    found = {}
    for part in re.split(r"^func ", text, flags=re.M)[1:]:
        head, *lines = part.split("\n")
        name = re.match(r"@(\w+)", head)[1]
        if "amdgcn.ds." in part or ".shared" in part:
            found[name] = Function(head, lines)
    return found


LAYOUTS = {"nn": ("M, K", "K, N"), "nt": ("M, K", "N, K"), "tn": ("K, M", "K, N"), "tt": ("K, M", "N, K")}
TYPES = [("gfx1100", "f16"), ("gfx1100", "i8"), ("gfx1201", "bf16"), ("gfx1201", "e4m3"), ("sm_80", "f32"), ("sm_80", "f64")]
TILES = {"gfx": ["", "tile m 64, n 64;", "tile m 256, n 64;", "tile m 96, n 48;", "tile m 32, n 160;"],
         "sm_": [f"instr fma; {tile}" for tile in ("", "tile m 64, n 64, k 16;", "tile m 32, n 64, k 32;")]}
MOST = 1.34


def compile_product(folder, target, type_, layout, schedule):
    """The functions of a product."""
    a, b = LAYOUTS[layout]
    acc = {"i8": "i32", "f64": "f64"}.get(type_, "f32")
    path = os.path.join(folder, "_".join((target, type_, layout)))
    with open(path + ".tile", "w", encoding="utf-8") as file:
        file.write(f"kernel f(A: {type_}[{a}], B: {type_}[{b}]) -> (C: {acc}[M, N])\n"
                   f"{{ C[m, n] = sum(k) A[{a.lower()}] * B[{b.lower()}]; }}\n"
                   f"schedule f for {target} {{ {schedule} }}\n")
    subprocess.run(["tcc", path + ".tile", f"--target={target}", "--emit=tir", "--tiles=1", "-o", path + ".tir"],
                   check=True)
    with open(path + ".tir", encoding="utf-8") as file:
        return functions(file.read())


def schedules(target):
    for tile in TILES[target[:3]]:
        if target.startswith("sm_"):
            yield tile
            continue
        for wave in (32, 64) if not tile else (32,):
            yield f"{tile} wave {wave};"


def main(folder):
    wrong = False
    for (target, type_), layout in itertools.product(TYPES, LAYOUTS):
        for schedule in schedules(target):
            found = compile_product(folder, target, type_, layout, schedule)
            for name in ["f"] + [name for name in found if name == "f__direct"]:
                stores, loads = map(found[name].factor, (STORES, LOADS))
                odd = any(int(n) & int(n) - 1 for n in re.findall(r"[mn] (\d+)", schedule))
                halves = type_ == "f64" and layout != "nt"
                bad = loads != 1 or not 1 <= stores <= (MOST if odd else 2 if halves else 1)
                wrong |= bad
                if bad:
                    print(f"{name} {target} {type_} {layout} {schedule}: stores {stores:.2f}, loads {loads:.2f}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
