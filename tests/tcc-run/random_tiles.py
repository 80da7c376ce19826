"""Draws programs of the tile level, lowers them op by op and runs each of three levels on the interpreter, which must
give the same numbers; and proves the protocol of the last: random_tiles.py BIN TARGET FIRST END

BIN         the folder of tcc-opt and tcc-run
FIRST, END  of the seeds, each a program

Prints a line for each program that fails, which stays in the current folder, and how many did not. What is "not
supported yet" is skipped, but no more than every fourth program.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import random
import shutil
import subprocess
import sys

import whole_numbers

WAVES = ["waves = [4, 1], lanes = 32, warps = [4, 0]", "waves = [2, 2], lanes = 32, warps = [4, 0]"]
ORDERS = ["", ", group = 2", ", raster = column", ", raster = hilbert", ", persistent = 1"]
STORES = ["", ", copy = interleaved", ", copy = tma"]
LAYOUT = "specialize-warps,draw-tiles,assign-layouts,chunk-epilogue,exchange-tiles,allocate-shared"
AFTER = "expand-math,canonicalize,cse,licm,dce"
COPY_A = "copy = buffer, contiguous = 1, swizzle = 0, panel = 16, pad = 32"
COPY_B = "copy = buffer, contiguous = 0, swizzle = 32, panel = 8, pad = 0"


def swizzle(width):
    return max(bytes for bytes in (32, 64, 128) if 2 * width % bytes == 0)


TARGETS = {  # how operands are copied, an MMA's m and n, sizes of tiles, ways to go through them and to store, passes
    "sm_90a": {"copy": lambda width: f"copy = tma, contiguous = 1, swizzle = {swizzle(width)}", "m": 64, "n": None,
               "rows": [64, 128], "widths": [16, 32, 48, 64, 80], "orders": ORDERS, "stores": STORES,
               "passes": ["distribute-grid,pipeline-copies," + LAYOUT, "lower-to-nvvm," + AFTER]},
    "sm_80": {"copy": lambda width: f"copy = cp_async, contiguous = 1, swizzle = {swizzle(width)}", "m": 16, "n": 8,
              "rows": [64, 128], "widths": [32, 64], "orders": ORDERS, "stores": STORES[:-1],
              "passes": ["distribute-grid,pipeline-registers," + LAYOUT, "lower-to-nvvm," + AFTER]},
    "gfx1100": {"copy": None, "m": 16, "n": 16,
                "rows": [64], "widths": [32, 64], "orders": ORDERS[:-1], "stores": STORES[:-1],
                "passes": ["distribute-grid,pipeline-registers," + LAYOUT, "lower-to-amdgcn," + AFTER + ",interleave"]},
}


class Program:
    def __init__(self, seed, target):
        self.draw, self.target, self.name = random.Random(seed), TARGETS[target], target
        self.lines, self.indent, self.values = [], "    ", 0
        self.rows, self.cols = self.draw.choice(self.target["rows"]), self.draw.choice(self.target["widths"])
        self.depth, self.trips = self.draw.choice([16, 32]), self.draw.randint(1, 4)
        self.tile = self.type("f32", self.rows, self.cols)
        self.loop = f"stages = {self.draw.randint(1, 3)}, warps = [{self.rows // 16}, 1]" if target == "sm_90a" \
            else "stages = 2, " + self.draw.choice(WAVES)
        self.instr = f"instr = [{self.target['m']}, {self.target['n'] or self.cols}, 16]"
        m, n, k = self.rows * self.draw.randint(1, 2), self.cols * self.draw.randint(1, 2), self.trips * self.depth
        self.inputs = {"A": ("f16", m, k), "B": ("f16", k, n), "V": ("f16", k, n),
                       "W": ("f16", self.trips * self.cols, n), "X": ("f32", m, n), "c": ("f32", n), "r": ("f32", m)}
        self.order = self.draw.choice(self.target["orders"])
        self.body()

    def type(self, element, rows, cols):
        return f"tile<{element}[{rows}, {cols}]>"

    def line(self, text):
        self.lines.append(self.indent + text)

    def new(self):
        self.values += 1
        return f"%v{self.values}"

    def op(self, text, type=None):
        value = self.new()
        self.line(f"{value} = {text} : {type or self.tile}")
        return value

    def const(self, value, type=None):
        return self.op(f"arith.const {{value = {value}}}", type)

    def clamped(self, a, most):
        """a where it is at most so large: what is computed stays exact."""
        return self.op(f"arith.max {self.op(f'arith.min {a}, {self.const(float(most))}')}, {self.const(float(-most))}")

    def loaded(self):
        tensor, dims, extents = self.draw.choice([("X", "0, 1", (self.rows, self.cols)), ("c", "-1, 0", (1, self.cols)),
                                                  ("r", "0, -1", (self.rows, 1))])
        at = {"X": "%m, %n", "c": "%n", "r": "%m"}[tensor]
        part = self.op(f"tile.load %{tensor}, {at} {{dims = [{dims}]}}", self.type("f32", *extents))
        return part if tensor == "X" else self.op(f"tile.broadcast {part} {{dims = [0, 1]}}")

    def gathered(self):
        """X at rows and columns that are computed, some of them outside."""
        whole = self.type("i32", self.rows, self.cols)

        def coordinate(dim):
            index = self.op(f"tile.index {{dim = {dim}}}", whole)
            first = self.op(f"tile.broadcast %{'mn'[dim]} {{dims = []}}", whole)
            index = self.op(f"arith.add {index}, {first}", whole)
            code, number = self.draw.choice([("add", -3), ("add", 5), ("mul", 2), ("mul", -1), ("xor", 1), ("shr", 2)])
            return self.op(f"arith.{code} {index}, {self.const(number, whole)}", whole)

        row, col = self.draw.choice([lambda: (coordinate(0), coordinate(1)), lambda: ("%m", coordinate(1)),
                                     lambda: (coordinate(1), "%lo"), lambda: (coordinate(0), coordinate(0))])()
        return self.op(f"tile.gather %X, {row}, {col}")

    def reduced(self, a):
        dim, kind = self.draw.randint(0, 1), self.draw.choice(["sum", "max", "min"])
        extents = (self.rows, 1) if dim else (1, self.cols)
        part = self.op(f"tile.reduce {self.clamped(a, 255)} {{dim = {dim}, kind = {kind}}}", self.type("f32", *extents))
        return self.op(f"tile.broadcast {part} {{dims = [0, 1]}}")

    def selected(self, a, b):
        bits = self.type("i1", self.rows, self.cols)
        pred = f"{{pred = {self.draw.choice(['lt', 'ge', 'eq', 'ne'])}}}"
        if self.draw.random() < 0.5:
            of = self.op(f"arith.cmp {a}, {b} {pred}", bits)
        else:
            whole = self.type("i32", self.rows, self.cols)
            index = self.op(f"tile.index {{dim = {self.draw.randint(0, 1)}}}", whole)
            of = self.op(f"arith.cmp {index}, {self.const(self.draw.randint(0, 70), whole)} {pred}", bits)
        return self.op(f"arith.select {of}, {a}, {b}")

    def narrowed(self, a):
        half = self.op(f"arith.cast {self.clamped(a, 255)}", self.type("f16", self.rows, self.cols))
        return self.op(f"arith.cast {half}")

    def computed(self, pool):
        """Something from tiles of the pool, and others."""
        a, b = self.draw.choice(pool), self.draw.choice(pool)
        return self.draw.choice([
            lambda: self.op(f"arith.{self.draw.choice(['add', 'sub', 'min', 'max'])} {a}, {b}"),
            lambda: self.op(f"{self.draw.choice(['math.relu', 'arith.neg', 'math.abs'])} {a}"),
            lambda: self.op(f"arith.{self.draw.choice(['add', 'min', 'max'])} {a}, {self.loaded()}"),
            lambda: self.op(f"arith.mul {self.clamped(a, 15)}, {self.clamped(b, 15)}"),
            lambda: self.op(f"arith.add {a}, {self.gathered()}"),
            lambda: self.reduced(a), lambda: self.selected(a, b), lambda: self.narrowed(a)])()

    def for_loop(self, to, starts, attributes, body):
        """A loop from 0 on that carries tiles: body, given the iteration's number and what is carried, returns them."""
        results, carried, i = [self.new() for _ in starts], [self.new() for _ in starts], self.new()
        types = ", ".join([self.tile] * len(starts))
        self.line(f"{', '.join(results)} = scf.for %lo, {to}, %one, {', '.join(starts)}{attributes} : {types} {{")
        self.line(f"^({i}: i32, {', '.join(f'{c}: {self.tile}' for c in carried)}):")
        self.indent += "  "
        self.line(f"scf.yield {', '.join(body(i, carried))}")
        self.indent = self.indent[:-2]
        self.line("}")
        return results

    def operand(self, tensor, at, rows, cols):
        copy = self.target["copy"]
        how = copy(cols) if copy else COPY_A if tensor == "A" else COPY_B
        return self.op(f"tile.load %{tensor}, {at} {{dims = [0, 1], {how}}}", self.type("f16", rows, cols))

    def mma(self, a, b, c):
        return self.op(f"tile.mma {a}, {b}, {c} {{{self.instr}}}")

    def product(self, pool):
        """One or two sums over k, with more in the loop."""
        sums, more = self.draw.randint(1, 2), self.draw.random() < 0.4
        starts = [self.draw.choice(pool + [self.const(self.draw.choice([0.0, 1.0, -2.0]))]) for _ in range(sums + more)]

        def body(i, carried):
            k = self.op(f"arith.mul {i}, %depth", "i32")
            a = self.operand("A", f"%m, {k}", self.rows, self.depth)
            new = [self.mma(a, self.operand(b, f"{k}, %n", self.depth, self.cols), c)
                   for b, c in zip("BV"[:sums], carried)]
            if self.draw.random() < 0.4:
                at = self.draw.randrange(sums)
                new[at] = self.clamped(self.computed(new + carried), 1000)
            return new + [self.op(f"arith.max {carried[-1]}, {new[0]}")] * more

        return [self.clamped(r, 4095) for r in
                self.for_loop("%hi", starts, f" {{at_least_once = 1, {self.loop}}}", body)]

    def product_of_computed(self, pool):
        half = self.op(f"arith.cast {self.clamped(self.draw.choice(pool), 7)}", self.type("f16", self.rows, self.cols))

        def body(i, carried):
            k = self.op(f"arith.mul {i}, {self.const(self.cols, 'i32')}", "i32")
            return [self.mma(half, self.operand("W", f"{k}, %n", self.cols, self.cols), carried[0])]

        start = self.clamped(self.draw.choice(pool), 255)
        return [self.clamped(r, 4095) for r in
                self.for_loop("%hi", [start], f" {{at_least_once = 1, {self.loop}}}", body)]

    def loop_without_mma(self, pool):
        def body(i, carried):
            number = self.op(f"tile.broadcast {self.op(f'arith.cast {i}', 'f32')} {{dims = []}}")
            new = [self.clamped(self.computed(carried + pool), 255), self.op(f"arith.min {carried[0]}, {number}")]
            self.draw.shuffle(new)
            return new

        starts = [self.clamped(self.draw.choice(pool), 255), self.draw.choice(pool)]
        return self.for_loop(self.const(self.draw.randint(0, 3), "i32"), starts, "", body)

    def branch(self, pool):
        at = self.const(self.draw.choice([0, self.rows]), "i32")
        condition = self.op(f"arith.cmp {self.draw.choice(['%m', '%n'])}, {at} {{pred = ge}}", "i1")
        result = self.new()
        self.line(f"{result} = scf.if {condition} : {self.tile} {{")
        self.indent += "  "
        for end in ("} {", "}"):
            self.line(f"scf.yield {self.computed(pool)}")
            self.lines.append(self.indent[:-2] + end)
        self.indent = self.indent[:-2]
        return [self.clamped(result, 4095)]

    def body(self):
        for name, value in (("lo", 0), ("hi", self.trips), ("one", 1), ("depth", self.depth)):
            self.line(f"%{name} = arith.const {{value = {value}}} : i32")
        pool = self.product([])
        for part in self.draw.sample([self.product, self.product_of_computed, self.loop_without_mma, self.branch], 2):
            pool += [self.clamped(self.computed(pool), 4095)] + part(pool)
        for tensor in "CD":
            stored = self.clamped(self.computed(pool), 4095 if tensor == "C" else 255)
            how = self.draw.choice(self.target["stores"])
            self.line(f"tile.store {stored}, %{tensor}, %m, %n {{dims = [0, 1]{how}}}")

    def text(self):
        dims = {"A": "M, K", "B": "K, N", "V": "K, N", "W": "L, N", "X": "M, N", "c": "N", "r": "M"}
        tensors = [f"%{name}: tensor<{self.inputs[name][0]}[{of}]>" for name, of in dims.items()]
        assumes = ", ".join(f"[align, {name}, 16], [pitch, {name}, 16]" for name in "ABVW")
        return "\n".join([
            f"module {{target = {self.name}}}",
            f"func @f({', '.join(tensors)}, %C: tensor<f32[M, N]>, %D: tensor<f16[M, N]>) "
            f"{{roles = [{'in, ' * len(tensors)}out, out], dims = [M, K, N, L]"
            + (f", assumes = [{assumes}]" if self.name != "sm_90a" else "") + "} {",
            f"  tile.grid {{axes = [m, n], extents = [$M, $N], tile = [{self.rows}, {self.cols}]{self.order}}} {{",
            "  ^(%m: i32, %n: i32):", *self.lines, "  }", "  return", "}", ""])


def failure(bin, target, seed, folder):
    """What is wrong with a program, as text; or whether it could be lowered. Its files are put into the folder."""
    program = Program(seed, target)
    folder.mkdir(exist_ok=True)
    levels = [folder / name for name in ("tile.tir", "async.tir", "target.tir")]
    levels[0].write_text(program.text())

    def run(tool, *args):
        r = subprocess.run([bin / tool, *args], capture_output=True, text=True)
        return None if r.returncode == 0 else f"{tool} ends with {r.returncode}: {r.stderr or r.stdout}"

    for i, passes in enumerate(program.target["passes"]):
        wrong = run("tcc-opt", levels[i], f"--passes={passes}", "-o", levels[i + 1])
        if wrong:
            return wrong if "not supported yet" not in wrong else False
    wrong = run("tcc-opt", levels[2], "--verify-pipeline", "-o", "/dev/null")
    if wrong:
        return wrong if "cannot be checked" not in wrong else False
    inputs = []
    for name, what in program.inputs.items():
        whole_numbers.write(folder / f"{name}.npy", what[1:], what[0], lambda: program.draw.randint(-2, 2))
        inputs += ["--input", f"{name}={folder / name}.npy"]
    results = []
    for level in levels:
        outputs = [folder / f"{name}.npy" for name in "CD"]
        wrong = run("tcc-run", level, "--on=interp", *inputs, f"--order=random:{seed}",
                    *(word for o in outputs for word in ("--output", f"{o.stem}={o}")))
        if wrong:
            return wrong
        results.append([o.read_bytes() for o in outputs])
        if results[-1] != results[0]:
            return f"{level.name} computes something else than tile.tir"
    return True


def main(bin, target, first, end):
    n, lowered, failed = int(end) - int(first), 0, 0
    for seed in range(int(first), int(end)):
        folder = pathlib.Path(f"{target}.{seed}")
        result = failure(pathlib.Path(bin), target, seed, folder)
        if isinstance(result, str):
            failed += 1
            print(f"{target}, seed {seed}: {result}")
        else:
            lowered += result
            shutil.rmtree(folder)
    print(f"{target}: {lowered} of {n} programs give the same on three levels")
    return failed > 0 or lowered < n * 3 / 4


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
