"""Draws programs of the whole language, and compares what the interpreter makes of the emitted code with what numpy
computes of the program: whole_programs.py BIN TARGET FIRST END [FOLDER]

BIN         the folder of tcc and tcc-run
FIRST, END  of the seeds, each a program
FOLDER      where programs that fail stay, with their data; default .

Numbers are whole, and so few and small that all types hold them exactly and sums are the same in any order: a result is
right or wrong. Prints each program that fails or is refused, and how many were not. What this file knows of the language
is written down here alone: none of the compiler's code is used.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np

MOST = {"f32": 1 << 22, "f16": 2048, "bf16": 256, "i32": 1 << 30, "i8": 127, "u8": 255}  # of whole numbers from there to 0
FLOATS = ["f32", "f16", "bf16"]
INTS = ["i32", "i8", "u8"]
OPERANDS = [("f16", "f16"), ("bf16", "bf16"), ("i8", "i8"), ("f32", "f32")]
LIMIT = 1 << 20  # of the numbers in expressions
COMPUTED = True  # coordinates, and indices and dimensions as numbers
COMPARED = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
            "!=": np.not_equal}


class Value:
    """An expression: its text, what it is, the most that it can be, its free indices, and numbers along all indices,
    1 along those that it does not have. inside: where all that it reads itself is inside tensors."""

    def __init__(self, text, is_int, most, free, numbers, *of):
        self.text, self.is_int, self.most, self.free, self.numbers = text, is_int, most, frozenset(free), numbers
        self.inside = np.True_
        for value in of:
            self.inside = self.inside & value.inside


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        names = "abcd"[:self.random.choice([1, 2, 3, 3, 3, 4])]
        self.indices = []  # of several dimensions, some of one
        self.extents, self.dims = {}, {}
        for name in names:
            size = self.random.choice([1, 2, 3, 5, 8, 8, 13, 16, 16, 24, 33, 40])
            while self.volume() * size > 40000:
                size = max(1, size // 2)
            dim = name.upper() if self.random.random() < 0.7 else str(size)
            for index in [name, name + "2"][:1 + (self.random.random() < 0.25 and self.volume() * size * size < 40000)]:
                self.indices.append(index)
                self.extents[index], self.dims[index] = size, dim
        self.tensors, self.outputs, self.intermediates, self.lines = {}, {}, {}, []
        self.domains = {}  # the values that indices take in reductions
        if self.random.random() < 0.15:
            x = self.random.choice(self.indices)
            first, last = sorted(self.random.randint(0, self.extents[x] - 1) for _ in range(2))
            self.lines.append(f"    index {x}: {first} <= {x} && {x} <= {last};")
            self.domains[x] = (first, last)

    def volume(self):
        n = 1
        for index in self.indices:
            n *= self.extents[index]
        return n

    # ---- leaves

    def spread(self, data, order):
        """Numbers along an order of indices as numbers along all."""
        by_place = sorted(range(len(order)), key=lambda i: self.indices.index(order[i]))
        shape = [self.extents[x] if x in order else 1 for x in self.indices]
        return np.transpose(data, by_place).reshape(shape)

    def new_tensor(self, order, element, most, role="in"):
        name = f"x{len(self.tensors)}"
        least = 0 if element == "u8" else -most
        shape = [self.extents[x] for x in order]
        data = np.array([self.random.randint(least, most) for _ in range(int(np.prod(shape, dtype=int)))]).reshape(shape)
        self.tensors[name] = {"role": role, "element": element, "dims": [self.dims[x] for x in order], "data": data,
                              "most": most, "alike": [self.extents[x] for x in order]}
        return name

    def read(self, name, order):
        t = self.tensors[name]
        is_int = t["element"] in INTS
        text = name + (f"[{', '.join(order)}]" if order else "")
        numbers = self.spread(t["data"].astype(np.int64 if is_int else np.float64), order)
        return Value(text, is_int, t["most"], order, numbers)

    def orders_of(self, dims):
        """Different indices that range over dimensions."""
        order = []
        for dim in dims:
            fits = [x for x in self.indices if self.dims[x] == dim and x not in order]
            if not fits:
                return None
            order.append(self.random.choice(fits))
        return order

    def along(self, x):
        return self.spread(np.arange(self.extents[x], dtype=np.int64), [x])

    def in_domain(self, over):
        inside = np.True_
        for x in over:
            if x in self.domains:
                inside = inside & (self.along(x) >= self.domains[x][0]) & (self.along(x) <= self.domains[x][1])
        return inside

    def coordinate(self, dim, size):
        """Text, numbers and indices of where something is read along a dimension."""
        x, y = self.random.choice(self.indices), self.random.choice(self.indices)
        c = self.random.randint(1, 4)
        of_dim = [i for i in self.indices if self.dims[i] == dim]
        choices = [(f"{x} + {c}", self.along(x) + c, [x]), (f"{x} - {c}", self.along(x) - c, [x]),
                   (f"2 * {x}", 2 * self.along(x), [x]), (f"{x} / {c + 1}", self.along(x) // (c + 1), [x]),
                   (f"{x} % {c + 1}", self.along(x) % (c + 1), [x]), (str(c - 1), np.int64(c - 1), [])]
        if x != y:
            choices.append((f"{x} + {y} - {c}", self.along(x) + self.along(y) - c, [x, y]))
        if not dim.isdigit():
            choices.append((f"{dim} - 1 - {x}", size - 1 - self.along(x), [x]))
        if of_dim and self.random.random() < 0.4:
            x = self.random.choice(of_dim)
            return x, self.along(x), [x]
        return self.random.choice(choices)

    def read_at(self):
        """Reads a tensor at computed coordinates."""
        of = self.random.sample(self.indices, min(len(self.indices), self.random.choice([1, 2, 2])))
        name = self.new_tensor(of, self.random.choice(FLOATS * 2 + INTS), 3)
        t = self.tensors[name]
        texts, at, free, inside = [], [], set(), np.True_
        for dim, size in zip(t["dims"], t["alike"]):
            text, numbers, indices = self.coordinate(dim, size)
            texts.append(text)
            inside = inside & (numbers >= 0) & (numbers < size)
            at.append(np.clip(numbers, 0, size - 1))
            free |= set(indices)
        is_int = t["element"] in INTS
        shape = [self.extents[x] if x in free else 1 for x in self.indices]
        inside = np.broadcast_to(inside, shape) if np.ndim(inside) else np.broadcast_to(inside, [1] * len(self.indices))
        numbers = np.where(inside, t["data"].astype(np.int64 if is_int else np.float64)[tuple(np.broadcast_arrays(*at))], 0)
        v = Value(f"{name}[{', '.join(texts)}]", is_int, t["most"], free, numbers.reshape(inside.shape))
        v.inside = inside
        return v

    def leaf(self, wanted):
        kind = self.random.random()
        if COMPUTED and kind < 0.04:
            x = self.random.choice(self.indices)
            return Value(x, True, self.extents[x], [x], self.along(x))
        if COMPUTED and kind < 0.06:
            x = self.random.choice(self.indices)
            if not self.dims[x].isdigit():
                return Value(self.dims[x], True, self.extents[x], [],
                             np.int64(self.extents[x]).reshape([1] * len(self.indices)))
        if COMPUTED and kind > 0.85:
            return self.read_at()
        kind = self.random.random()
        if kind < 0.1:
            number = self.random.randint(0, 4)
            return Value(str(number), None, number, [], np.float64(number).reshape([1] * len(self.indices)))
        if kind < 0.35 and self.intermediates:
            name = self.random.choice(list(self.intermediates))
            return self.again(name)
        known = [n for n, t in self.tensors.items() if t["dims"] and n not in self.outputs]
        if kind < 0.6 and known:
            name = self.random.choice(known)
            order = self.orders_of(self.tensors[name]["dims"])
            if order is not None:
                return self.read(name, order)
        order = [x for x in self.indices if x in wanted or self.random.random() < 0.3]
        self.random.shuffle(order)
        element = self.random.choice(FLOATS * 2 + INTS)
        if not order:
            element = self.random.choice(["f32", "i32"])
        return self.read(self.new_tensor(order, element, self.random.choice([1, 3, 4])), order)

    def again(self, name):
        """Reads an intermediate or an output, at times with other indices."""
        value, order = self.intermediates[name]
        other = self.orders_of([self.dims[x] for x in order]) if self.random.random() < 0.3 else order
        other = other or order
        data = np.transpose(np.broadcast_to(value.numbers, [self.extents[x] if x in order else 1 for x in self.indices]).reshape(
            [self.extents[x] for x in self.indices if x in order]),
            [sorted(order, key=self.indices.index).index(x) for x in order])
        text = name + (f"[{', '.join(other)}]" if other else "")
        return Value(text, value.is_int, value.most, other, self.spread(data, other))

    # ---- operators

    def limited(self, v, most):
        if v.most <= most:
            return v
        return Value(f"min(max({v.text}, -{most}), {most})", v.is_int, most, v.free,
                     np.clip(v.numbers, -most, most), v)

    def alike(self, v, w):
        """Both floats or both integers; numbers are what stands beside them."""
        if v.is_int is None or w.is_int is None or v.is_int == w.is_int:
            return v, w
        return self.as_float(v), self.as_float(w)

    def as_float(self, v):
        return Value(f"f32({v.text})", False, v.most, v.free, v.numbers.astype(np.float64), v) if v.is_int else v

    def as_int(self, v):
        return v if v.is_int else Value(f"i32({v.text})", True, v.most, v.free, v.numbers.astype(np.int64), v)

    def joined_int(self, v, w):
        return v.is_int if w.is_int is None else w.is_int

    def binary(self, v, w):
        v, w = self.alike(v, w)
        op = self.random.choice(["+", "+", "-", "*", "*", "min", "max"])
        if op == "*":
            v, w = self.limited(v, 256), self.limited(w, 256)
            most, numbers = v.most * w.most, v.numbers * w.numbers
        elif op in "+-":
            most, numbers = v.most + w.most, v.numbers + w.numbers if op == "+" else v.numbers - w.numbers
        else:
            most, numbers = max(v.most, w.most), (np.minimum if op == "min" else np.maximum)(v.numbers, w.numbers)
        text = f"{op}({v.text}, {w.text})" if op.isalpha() else f"({v.text} {op} {w.text})"
        return self.limited(Value(text, self.joined_int(v, w), most, v.free | w.free, numbers, v, w), LIMIT)

    def unary(self, v):
        name, function = self.random.choice([("-", np.negative), ("abs", np.abs), ("relu", lambda x: np.maximum(x, 0)),
                                             ("f32", None), ("i32", None)])
        if name == "f32":
            return self.as_float(v)
        if name == "i32":
            return self.as_int(v)
        if COMPUTED and v.is_int and self.random.random() < 0.4:
            op, n = self.random.choice("/%"), self.random.randint(1, 5)
            numbers = v.numbers // n if op == "/" else v.numbers % n
            return Value(f"({v.text} {op} {n})", True, v.most + 1 if op == "/" else n, v.free, numbers, v)
        return Value(f"{name}({v.text})", v.is_int, v.most, v.free, function(v.numbers), v)

    def where(self, depth, wanted):
        v, w = self.alike(self.expression(depth, wanted), self.expression(depth, wanted))
        x, y = self.alike(self.expression(depth, wanted), self.expression(depth, wanted))
        name = self.random.choice(list(COMPARED))
        numbers = np.where(COMPARED[name](v.numbers, w.numbers), x.numbers, y.numbers)
        return Value(f"where({v.text} {name} {w.text}, {x.text}, {y.text})", self.joined_int(x, y), max(x.most, y.most),
                     v.free | w.free | x.free | y.free, numbers, v, w, x, y)

    def reduction(self, depth, wanted):
        n = self.random.choice([1, 1, 1, 2])
        over = self.random.sample(self.indices, min(n, len(self.indices)))
        term = self.expression(depth, frozenset(over) | wanted)
        over = [x for x in over if x in term.free]
        if not over or term.is_int is None:
            return term
        kind = self.random.choice(["sum", "sum", "max", "min", "argmax", "argmin"])
        if kind.startswith("arg"):
            over = over[:1]
        axes = tuple(self.indices.index(x) for x in over)
        numbers = term.numbers
        exists = np.broadcast_to(term.inside & self.in_domain(over), numbers.shape)
        if kind in ("max", "min") and not exists.any(axis=axes).all():
            kind = "sum"
        if kind.startswith("arg"):
            none = (-1 if kind == "argmax" else 1) * (np.int64(1 << 40) if term.is_int else np.inf)
            places = getattr(np, kind)(np.where(exists, numbers, none), axis=axes[0], keepdims=True)
            numbers = np.where(exists.any(axis=axes, keepdims=True), places, -1)
            return Value(f"({kind}({over[0]}) ({term.text}))", True, self.extents[over[0]], term.free - set(over),
                         numbers.astype(np.int64))
        count = int(np.prod([self.extents[x] for x in over]))
        if kind == "sum":
            term = self.limited(term, max(1, LIMIT // count))
            numbers = np.where(exists, term.numbers, 0)
        else:
            numbers = np.where(exists, numbers, (-1 if kind == "max" else 1) * (1 << 40))
        numbers = getattr(np, kind)(numbers, axis=axes, keepdims=True)
        most = term.most * count if kind == "sum" else term.most
        return Value(f"({kind}({', '.join(over)}) ({term.text}))", term.is_int, most, term.free - set(over), numbers)

    def product(self):
        """A sum of products that instructions multiply, of tensors or of what is computed of one."""
        if len(self.indices) < 2:
            return self.leaf(frozenset())
        k, m = self.random.sample(self.indices, 2)
        others = [x for x in self.indices if x not in (k, m)]
        elements = self.random.choice(OPERANDS)
        own = [[m], [x for x in others if self.random.random() < 0.7]]
        factors = []
        for i in range(2):
            order = own[i] + [k]
            self.random.shuffle(order)
            v = self.read(self.new_tensor(order, elements[i], 2), order)
            if self.random.random() < 0.3 and elements[i] != "i8":
                w = self.leaf(frozenset(order))
                if w.free <= v.free and not w.is_int:
                    v = self.limited(self.binary(v, w), 32)
            factors.append(v)
        if factors[0].is_int != factors[1].is_int:
            factors = [self.as_float(v) for v in factors]
        products = factors[0].numbers * factors[1].numbers
        exists = factors[0].inside & factors[1].inside & self.in_domain([k])
        numbers = np.where(exists, products, 0).sum(axis=self.indices.index(k), keepdims=True)
        most = factors[0].most * factors[1].most * self.extents[k]
        return Value(f"(sum({k}) {factors[0].text} * {factors[1].text})", factors[0].is_int, most,
                     (factors[0].free | factors[1].free) - {k}, numbers)

    def expression(self, depth, wanted=frozenset()):
        kind = self.random.random()
        if depth <= 0 or kind < 0.15:
            return self.leaf(wanted)
        if kind < 0.5:
            return self.binary(self.expression(depth - 1, wanted), self.expression(depth - 1, wanted))
        if kind < 0.6:
            return self.unary(self.expression(depth - 1, wanted))
        if kind < 0.67:
            return self.where(depth - 2, wanted)
        if kind < 0.8:
            return self.product()
        return self.reduction(depth - 1, wanted)

    # ---- statements

    def statement(self, is_output):
        v = self.expression(self.random.choice([1, 2, 2, 3]))
        order = list(v.free)
        order.sort()
        self.random.shuffle(order)
        if v.is_int is None:
            v.is_int = False
        if is_output:
            name = f"y{len(self.outputs)}"
            element = self.random.choice([e for e in (INTS if v.is_int else FLOATS) if e in INTS or MOST[e] >= v.most] or
                                         ["f32"])
            numbers = v.numbers
            if v.is_int:
                numbers = np.clip(numbers, {"i8": -128, "u8": 0}.get(element, -(1 << 31)), MOST[element] if element != "i32"
                                  else (1 << 31) - 1)
            stored = Value(name, v.is_int, min(v.most, MOST[element] + (element == "i8")), v.free, numbers)
            self.outputs[name] = (element, order, stored)
        else:
            name, stored = f"t{len(self.intermediates)}", v
        left = name + (f"[{', '.join(order)}]" if order else "")
        self.lines.append(f"    {left} = {v.text};")
        self.intermediates[name] = (stored, order)

    def update(self, name, order):
        """Writes an inout tensor, which may be read as it was, and then as it is."""
        old, other = self.read(name, order), self.expression(1)
        v = self.binary(old, other) if other.free <= old.free else self.unary(old)
        if v.is_int != old.is_int:
            v = self.as_int(v) if old.is_int else self.as_float(v)
        element = self.tensors[name]["element"]
        self.lines.append(f"    {name}[{', '.join(order)}] = {v.text};")
        stored = Value(name, v.is_int, v.most, old.free, v.numbers)
        self.outputs[name] = (element, order, stored)
        self.intermediates[name] = (stored, order)
        self.tensors[name]["dims_read"] = None

    def draw(self):
        changed = None
        if self.random.random() < 0.3:
            order = self.random.sample(self.indices, min(len(self.indices), 2))
            changed = self.new_tensor(order, self.random.choice(["f32", "i32"]), 4, "inout"), order
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            self.statement(False)
        if changed and self.random.random() < 0.5:
            self.update(*changed)
            changed = None
        for _ in range(self.random.choice([1, 1, 2, 3])):
            self.statement(True)
            if self.random.random() < 0.2:
                self.statement(False)
        if changed:
            self.update(*changed)

    def text(self):
        body = "\n".join(self.lines)
        for x in self.domains:
            if not re.search(rf"\b(?:sum|(?:arg)?max|(?:arg)?min)\((?:\w+, )*{x}(?:, \w+)*\) [^+*/<>=-]", body):
                body = re.sub(rf"    index {x}: .*\n", "", body)
        for x in self.indices:  # somewhere an index is a coordinate by itself, and domains are of indices that there are
            used = re.search(rf"\b{x}\b", body)
            of_tensors = [d for n, t in self.tensors.items() if re.search(rf"\b{n}\b", body) for d in t["dims"]]
            named = re.search(rf"\b{self.dims[x]}\b", body) and self.dims[x] not in of_tensors and not any(
                self.dims[i] == self.dims[x] for _, o, _ in self.outputs.values() for i in o)
            if named or (used and not re.search(rf"[\[,] ?{x}[,\]]", body)):
                out = f"y{len(self.outputs)}"
                self.outputs[out] = ("i32", [x], Value(out, True, self.extents[x], [x], self.along(x)))
                body += f"\n    {out}[{x}] = {x};"
        unused = [n for n in self.intermediates if n[0] == "t" and body.count(n + "[") + body.count(n + " ") +
                  body.count(n + ")") + body.count(n + ",") + body.count(n + ";") < 2]
        for name in unused:  # everything that is defined is used
            value, order = self.intermediates[name]
            out = f"y{len(self.outputs)}"
            most = value.most
            element = "i32" if value.is_int else "f32"
            subscript = f"[{', '.join(order)}]" if order else ""
            self.outputs[out] = (element, order, Value(out, value.is_int, most, value.free, value.numbers))
            body += f"\n    {out}{subscript} = {name}{subscript};"
        self.tensors = {n: t for n, t in self.tensors.items() if re.search(rf"\b{n}\b", body)}
        parameters = ", ".join(("inout " if t["role"] == "inout" else "") + f"{n}: {t['element']}" + (f"[{', '.join(t['dims'])}]" if t["dims"] else "")
                               for n, t in self.tensors.items())
        outputs = ", ".join(f"{n}: {e}" + (f"[{', '.join(self.dims[x] for x in o)}]" if o else "")
                            for n, (e, o, _) in self.outputs.items() if n[0] == "y")
        return f"kernel f({parameters})" + (f" -> ({outputs})" if outputs else "") + f"\n{{\n{body}\n}}\n"

    def expected(self, name):
        element, order, v = self.outputs[name]
        shape = [self.extents[x] for x in self.indices if x in order]
        data = np.broadcast_to(v.numbers, [self.extents[x] if x in order else 1 for x in self.indices]).reshape(shape)
        return np.transpose(data, [sorted(order, key=self.indices.index).index(x) for x in order])


def load(path, element):
    data = np.load(path)
    if element == "bf16":
        data = (data.astype(np.uint32).reshape(-1) << 16).view(np.float32).reshape(data.shape)
    return data.astype(np.float64)


def run(program, folder, bin, target, seed):
    """What is wrong with the results; None: nothing is."""
    text = program.text()
    (folder / "f.tile").write_text(text)
    command = [f"{bin}/tcc-run", "f.tile", "--target", target, "--on=interp", "--check", f"--order=random:{seed}"]
    sizes = {program.dims[x]: program.extents[x] for x in program.indices if not program.dims[x].isdigit()}
    used = {d for t in program.tensors.values() for d in t["dims"]} | {
        program.dims[x] for _, o, _ in program.outputs.values() for x in o}
    sizes = {d: n for d, n in sizes.items() if d in used}
    if sizes:
        command += ["--size", ",".join(f"{d}={n}" for d, n in sizes.items())]
    for name, t in program.tensors.items():
        if t["dims"]:
            np.save(folder / f"{name}.npy", t["data"].astype(np.int32 if t["element"] in INTS else np.float32))
            command += ["--input", f"{name}={name}.npy"]
        else:
            command += ["--set", f"{name}={int(t['data'])}"]
    for name in program.outputs:
        command += ["--output", f"{name}={name}.npy"]
    (folder / "command").write_text(" ".join(command) + "\n")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode:
        return (done.stderr.strip() or done.stdout.strip() or f"ended with {done.returncode}")[-2000:]
    for name, (element, _, _) in program.outputs.items():
        got, want = load(folder / f"{name}.npy", element), program.expected(name)
        if got.shape != want.shape:
            return f"{name} has shape {got.shape}, not {want.shape}"
        if not np.array_equal(got, want):
            at = tuple(int(i) for i in np.argwhere(got != want)[0])
            return f"{name}{list(at)} is {got[at]}, not {want[at]}; {np.sum(got != want)} of {got.size} are wrong"
    return None


def main():
    bin, target, first, end = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    out = pathlib.Path(sys.argv[5] if len(sys.argv) > 5 else ".")
    failed = 0
    for seed in range(first, end):
        program = Program(seed)
        program.draw()
        with tempfile.TemporaryDirectory() as folder:
            wrong = run(program, pathlib.Path(folder), bin, target, seed)
            if wrong is None:
                continue
            failed += 1
            kept = out / f"whole-{target}-{seed}"
            kept.mkdir(parents=True, exist_ok=True)
            for file in pathlib.Path(folder).iterdir():
                (kept / file.name).write_bytes(file.read_bytes())
            print(f"program {seed} for {target}: {wrong}\n{program.text()}", flush=True)
    print(f"{target}: {end - first - failed} of {end - first} programs are right")
    return failed > 0


sys.exit(main())
