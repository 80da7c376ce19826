"""A random program of the tile language, and what numpy computes of it. What this file knows of the language is written
down here alone: none of the compiler's code is used.

Numbers are whole, and so few and small that all types hold them exactly and sums are the same in any order.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import random
import re

import numpy as np

from drawn_strides import as_in_memory, draw_strides

# Of whole numbers from there to 0.
MOST = {"f64": 1 << 40, "f32": 1 << 22, "tf32": 2048, "f16": 2048, "bf16": 256, "e4m3": 16, "e5m2": 8, "i32": 1 << 30,
        "i8": 127, "u8": 255, "i4": 7, "u4": 15}
INTS = ["i32", "i8", "u8", "i4", "u4"]
INPUTS = ["f32", "f16", "bf16"] * 4 + ["i32", "i8", "u8"] * 2 + ["e4m3", "e5m2", "i4", "u4"]
OUTPUTS = {"i": ["i32", "i8", "u8"], "f": ["f32", "f16", "bf16", "e4m3", "e5m2"], "d": ["f64"]}
OPERANDS = [("f16", "f16"), ("bf16", "bf16"), ("i8", "i8"), ("f32", "f32")] * 3 + [
    ("u8", "i8"), ("e4m3", "e4m3"), ("e5m2", "e4m3"), ("i4", "i4"), ("u4", "u4")]
LIMIT = 1 << 20  # of the numbers in expressions
LONGEST = 500  # text of an expression
COMPARED = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
            "!=": np.not_equal}
REDUCED = r"\b(?:sum|(?:arg)?max|(?:arg)?min)\(((?:\w+, )*\w+)\) (?=[^+*/%<>=!-])"


def kind_of(element):
    return "i" if element in INTS else "d" if element == "f64" else "f"


class Value:
    """An expression: its text; whether it is an i32, an f32, an f64 or just a number; the most that it can be; its free
    indices, and numbers along all indices, 1 along those that it does not have. inside: where all that it reads itself
    is inside tensors."""

    def __init__(self, text, kind, most, free, numbers, *of):
        self.text, self.kind, self.most, self.free, self.numbers = text, kind, most, frozenset(free), numbers
        self.inside = np.True_
        for value in of:
            self.inside = self.inside & value.inside


class Index:
    """dim: its dimension's text, None for one that has only bounds, which is always reduced; at: its values."""

    def __init__(self, dim, size, first=0):
        self.dim, self.size, self.at = dim, size, np.arange(first, first + size, dtype=np.int64)


class Program:
    def __init__(self, seed, more_types):
        """more_types: that the target has beside those that all have."""
        self.random, self.random_of_strides = random.Random(seed), random.Random(f"strides {seed}")
        self.strides = {}  # of tensors that are strided; None for others
        self.inputs = INPUTS + more_types
        self.operands = OPERANDS + [(t, t) for t in more_types]
        self.names, self.of = [], {}  # of indices; what they are
        self.consts, self.sizes = {}, {}
        self.draw_indices()
        self.plain = [x for x in self.names if self.of[x].dim]
        self.tensors, self.outputs, self.intermediates, self.lines = {}, {}, {}, []
        self.domains = {}  # of an index: which values exist, and on which other indices that depends
        for x in self.names:
            if self.of[x].dim is None:
                self.bound(x)
            elif self.chance(0.08):
                self.restrict(x)

    def chance(self, part):
        return self.random.random() < part

    # ---- indices

    def volume(self):
        n = 1
        for x in self.names:
            n *= max(1, self.of[x].size)
        return n

    def draw_indices(self):
        for name in "abcd"[:self.random.choice([1, 2, 3, 3, 3, 4])]:
            size = self.random.choice([1, 2, 3, 5, 8, 8, 13, 16, 16, 24, 33, 40, 65, 130])
            while self.volume() * size > 40000:
                size = max(1, size // 2)
            dim, kind = name.upper(), self.random.random()
            if kind < 0.25:
                dim = str(size)
            elif kind < 0.32:
                self.consts[dim] = size
            else:
                size = 0 if kind > 0.98 else size
                self.sizes[dim] = size
            for x in [name, name + "2"][:1 + (self.chance(0.25) and self.volume() * size * size < 40000)]:
                self.names.append(x)
                self.of[x] = Index(dim, size)
        if self.chance(0.15) and self.volume() < 10000:
            self.names.append("r")
            self.of["r"] = Index(None, self.random.randint(1, 4), self.random.choice([0, 0, -1, 2]))

    def along(self, x):
        return self.spread(self.of[x].at, [x])

    def spread(self, data, order):
        """Numbers along an order of indices as numbers along all."""
        by_place = sorted(range(len(order)), key=lambda i: self.names.index(order[i]))
        return np.transpose(data, by_place).reshape(self.shape(order))

    def shape(self, free):
        return [self.of[x].size if x in free else 1 for x in self.names]

    def packed(self, numbers, order):
        """Numbers along all indices as numbers along an order of them."""
        data = np.broadcast_to(numbers, self.shape(order)).reshape([self.of[x].size for x in self.names if x in order])
        return np.transpose(data, [sorted(order, key=self.names.index).index(x) for x in order])

    # ---- domains

    def bound(self, x):
        first, size = int(self.of[x].at[0]), self.of[x].size
        last = self.random.choice([f"{x} < {first + size}", f"{x} <= {first + size - 1}"])
        low = f"{first} <= {x}" if first >= 0 else f"{x} >= {first}"
        text, exists, free = f"{low} && {last}", np.True_, set()
        if self.chance(0.3):
            more, exists, free = self.condition(x)
            text += f" && {more}"
        self.lines.append(f"    index {x}: {text};")
        self.domains[x] = exists, free - {x}

    def restrict(self, x):
        text, exists, free = self.condition(x)
        if self.chance(0.4):
            more, of_more, free_of_more = self.condition(x)
            text, exists, free = f"{text} && {more}", exists & of_more, free | free_of_more
        self.lines.append(f"    index {x}: {text};")
        self.domains[x] = exists, free - {x}

    def condition(self, x):
        """Compares an index with a number, another index or what is loaded."""
        op = self.random.choice(list(COMPARED))
        left, of_left, free = self.random.choice([(x, self.along(x), {x}), (f"{x} + 1", self.along(x) + 1, {x}),
                                                  (f"{x} / 2", self.along(x) // 2, {x}),
                                                  (f"{x} % 3", self.along(x) % 3, {x})])
        y = self.random.choice(self.plain)
        kind = self.random.random()
        if kind < 0.3 or y == x:
            n = self.random.randint(0, max(1, self.of[x].size))
            return f"{left} {op} {n}", COMPARED[op](of_left, n), free
        if kind < 0.7:
            c = self.random.randint(0, 3)
            return f"{left} {op} {y} - {c}", COMPARED[op](of_left, self.along(y) - c), free | {y}
        limits = self.new_tensor([y], "i32", max(1, self.of[x].size))
        loaded = self.read(limits, [y])
        return f"{left} {op} {loaded.text}", COMPARED[op](of_left, loaded.numbers), free | {y}

    def in_domain(self, over):
        exists, free = np.True_, set()
        for x in over:
            if x in self.domains:
                exists, free = exists & self.domains[x][0], free | self.domains[x][1]
        return exists, free

    # ---- tensors

    def new_tensor(self, order, element, most, role="in"):
        name = f"x{len(self.tensors)}"
        most = min(most, MOST[element])
        least = 0 if element[0] == "u" else -most
        shape = [self.of[x].size for x in order]
        data = np.array([self.random.randint(least, most) for _ in range(int(np.prod(shape, dtype=int)))],
                        dtype=np.int64).reshape(shape)
        strides = self.strides_of(name, order, role == "in")
        data = as_in_memory(data, strides) if strides else data
        self.tensors[name] = {"role": role, "element": element, "dims": [self.of[x].dim for x in order], "data": data,
                              "most": most}
        return name

    def strides_of(self, name, order, repeats=False):
        if name not in self.strides:
            strided = order and self.random_of_strides.random() < 0.3
            extents = [self.of[x].size for x in order]
            self.strides[name] = draw_strides(self.random_of_strides, extents, repeats) if strided else None
        return self.strides[name]

    def typed(self, name):
        t = self.tensors[name]
        return t["data"].astype(np.int64 if t["element"] in INTS else np.float64)

    def read(self, name, order):
        t = self.tensors[name]
        text = name + (f"[{', '.join(order)}]" if order else "")
        return Value(text, kind_of(t["element"]), t["most"], order, self.spread(self.typed(name), order))

    def orders_of(self, dims):
        """Different indices that range over dimensions."""
        order = []
        for dim in dims:
            fits = [x for x in self.plain if self.of[x].dim == dim and x not in order]
            if not fits:
                return None
            order.append(self.random.choice(fits))
        return order

    # ---- coordinates

    def coordinate(self, dim, size, depth=2):
        """Text, numbers and indices of where something is read along a dimension."""
        of_dim = [x for x in self.plain if self.of[x].dim == dim]
        if depth == 2 and of_dim and self.chance(0.4):
            x = self.random.choice(of_dim)
            return x, self.along(x), {x}
        x, c = self.random.choice(self.names), self.random.randint(1, 4)
        kind = self.random.random()
        if depth <= 0:
            return x, self.along(x), {x}
        if kind < 0.2:
            return str(c - 1), np.int64(c - 1).reshape([1] * len(self.names)), set()
        if kind < 0.3:
            y = self.random.choice(self.plain)
            loaded = self.read(self.new_tensor([y], "i32", size), [y])
            return (loaded.text, loaded.numbers, {y}) if self.chance(0.6) else (
                f"({loaded.text} * 2 + {x} % 2)", loaded.numbers * 2 + self.along(x) % 2, {x, y})
        text, numbers, free = self.coordinate(dim, size, depth - 1)
        by_dim = not dim.isdigit() and self.chance(0.4)
        by, of_by = (dim, max(1, size)) if by_dim else (str(c + 1), c + 1)
        if kind < 0.45:
            return self.random.choice([(f"({text} + {c})", numbers + c, free), (f"({text} - {c})", numbers - c, free)])
        if not free:
            return text, numbers, free
        if kind < 0.55:
            return f"({text}) / {by}", numbers // of_by, free
        if kind < 0.7:
            return f"({text}) % {by}", numbers % of_by, free
        if kind < 0.78:
            return f"{c} * ({text})", c * numbers, free
        if kind < 0.86 and not dim.isdigit():
            return f"{dim} - 1 - ({text})", size - 1 - numbers, free
        return f"({text} + {x} - {c})", numbers + self.along(x) - c, free | {x}

    def read_at(self, text, kind, most, dims, data):
        """Reads what has these dimensions and data at computed coordinates."""
        texts, at, free, inside = [], [], set(), np.True_
        for dim, size in zip(dims, data.shape):
            coordinate, numbers, indices = self.coordinate(dim, size)
            texts.append(coordinate[1:-1] if re.fullmatch(r"\([^()]*\)", coordinate) else coordinate)
            inside = inside & (numbers >= 0) & (numbers < size)
            at.append(np.clip(numbers, 0, max(0, size - 1)))
            free |= indices
        inside = np.broadcast_to(inside, self.shape(free))
        if data.size:
            numbers = np.where(inside, data[tuple(np.broadcast_arrays(*at))], 0)
        else:
            numbers = np.zeros(self.shape(free), data.dtype)
        v = Value(f"{text}[{', '.join(texts)}]", kind, most, free, numbers.reshape(inside.shape))
        v.inside = inside
        return v

    def read_tensor_at(self):
        of = self.random.sample(self.plain, min(len(self.plain), self.random.choice([1, 2, 2, 3])))
        name = self.new_tensor(of, self.random.choice(self.inputs), 3)
        t = self.tensors[name]
        return self.read_at(name, kind_of(t["element"]), t["most"], t["dims"], self.typed(name))

    def again(self, name, at=0.3):
        """Reads an intermediate or an output, at times with other indices or at computed coordinates."""
        value, order = self.intermediates[name]
        dims = [self.of[x].dim for x in order]
        data = self.packed(value.numbers, order)
        if order and self.chance(at / 2):
            return self.read_at(name, value.kind, value.most, dims, data)
        other = (self.orders_of(dims) if self.chance(at) else None) or order
        return Value(name + (f"[{', '.join(other)}]" if other else ""), value.kind, value.most, other,
                     self.spread(data, other))

    def leaf(self, wanted):
        kind = self.random.random()
        if kind < 0.04:
            x = self.random.choice(self.names)
            return Value(x, "i", max(1, int(np.abs(self.of[x].at).max(initial=1))), [x], self.along(x))
        if kind < 0.06:
            x = self.random.choice(self.plain)
            if not self.of[x].dim.isdigit():
                return Value(self.of[x].dim, "i", max(1, self.of[x].size), [],
                             np.int64(self.of[x].size).reshape([1] * len(self.names)))
        if kind > 0.85:
            return self.read_tensor_at()
        kind = self.random.random()
        if kind < 0.1:
            number = self.random.randint(0, 4)
            return Value(str(number), None, number, [], np.float64(number).reshape([1] * len(self.names)))
        if kind < 0.35 and self.intermediates:
            return self.again(self.random.choice(list(self.intermediates)))
        known = [n for n, t in self.tensors.items() if t["dims"] and n not in self.outputs]
        if kind < 0.6 and known:
            name = self.random.choice(known)
            order = self.orders_of(self.tensors[name]["dims"])
            if order is not None:
                return self.read(name, order)
        order = [x for x in self.plain if x in wanted or self.chance(0.3)]
        self.random.shuffle(order)
        element = self.random.choice(self.inputs) if order else self.random.choice(["f32", "i32"])
        return self.read(self.new_tensor(order, element, self.random.choice([1, 3, 4])), order)

    # ---- operators

    def limited(self, v, most):
        if v.most <= most:
            return v
        return Value(f"min(max({v.text}, -{most}), {most})", v.kind, most, v.free, np.clip(v.numbers, -most, most), v)

    def alike(self, v, w):
        """Both of one type; numbers are what stands beside them."""
        if v.kind is None or w.kind is None or v.kind == w.kind:
            return v, w
        wide = "d" in (v.kind, w.kind) and self.chance(0.5)
        return (self.to("f64" if wide else "f32", v), self.to("f64" if wide else "f32", w))

    def to(self, element, v):
        """Converted to an element's type, which holds it."""
        if element in ("i32", "f32", "f64") and v.kind == kind_of(element):
            return v
        kind = kind_of(element)
        numbers = v.numbers.astype(np.int64 if kind == "i" else np.float64)
        return Value(f"{element}({v.text})", kind, v.most, v.free, numbers, v)

    def kind_of_both(self, v, w):
        return w.kind if v.kind is None else v.kind

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
        return self.limited(Value(text, self.kind_of_both(v, w), most, v.free | w.free, numbers, v, w), LIMIT)

    def divided(self, v, depth, wanted):
        """By a number, or by anything, which counts as 1 below that."""
        op, n = self.random.choice("/%"), self.random.randint(1, 5)
        w = Value(str(n), "i", n, [], np.int64(n).reshape([1] * len(self.names)))
        if self.chance(0.4):
            w = self.expression(depth - 1, wanted)
            w = self.to("i32", w) if w.kind else w
        if w.kind is None:  # 0 is an error
            w = Value(f"({w.text} + 1)", None, w.most + 1, [], w.numbers + 1)
        by = np.maximum(w.numbers, 1).astype(np.int64)
        numbers = v.numbers // by if op == "/" else v.numbers % by
        return Value(f"({v.text} {op} {w.text})", "i", v.most + 1 if op == "/" else max(1, w.most), v.free | w.free,
                     numbers, v, w)

    def unary(self, v, depth=0, wanted=frozenset()):
        name, function = self.random.choice([("-", np.negative), ("abs", np.abs), ("relu", lambda x: np.maximum(x, 0)),
                                             ("f32", None), ("i32", None), ("narrow", None)])
        if name in ("f32", "i32"):
            return self.to(name, v)
        if name == "narrow":
            fits = [e for e in ("f16", "bf16") if v.most <= MOST[e] and v.kind in ("i", "f")]
            return self.to(self.random.choice(fits), v) if fits else v
        if v.kind == "i" and self.chance(0.4):
            return self.divided(v, depth, wanted)
        return Value(f"{name}({v.text})", v.kind, v.most, v.free, function(v.numbers), v)

    def where(self, depth, wanted):
        text, holds, of = [], np.True_, []
        for _ in range(self.random.choice([1, 1, 2])):
            v, w = self.alike(self.expression(depth, wanted), self.expression(depth, wanted))
            name = self.random.choice(list(COMPARED))
            text.append(f"{v.text} {name} {w.text}")
            holds = holds & COMPARED[name](v.numbers, w.numbers)
            of += [v, w]
        x, y = self.alike(self.expression(depth, wanted), self.expression(depth, wanted))
        of += [x, y]
        return Value(f"where({' && '.join(text)}, {x.text}, {y.text})", self.kind_of_both(x, y), max(x.most, y.most),
                     frozenset().union(*(v.free for v in of)), np.where(holds, x.numbers, y.numbers), *of)

    # ---- reductions

    def reduction(self, depth, wanted):
        over = self.random.sample(self.names, min(self.random.choice([1, 1, 1, 2, 3]), len(self.names)))
        term = self.expression(depth, frozenset(over) | wanted)
        over = [x for x in over if x in term.free]
        if not over or term.kind is None:
            return term
        return self.reduced(term, over, self.random.choice(["sum", "sum", "max", "min", "argmax", "argmin"]))

    def reduced(self, term, over, kind):
        over = over[:1] if kind.startswith("arg") else over
        exists, more = self.in_domain(over)
        exists = np.broadcast_to(term.inside & exists, self.shape(term.free | more))
        numbers = np.broadcast_to(term.numbers, exists.shape)
        free = (term.free | more) - set(over)
        axes = tuple(self.names.index(x) for x in over)
        some = exists.any(axis=axes, keepdims=True)
        if kind.startswith("arg"):
            none = (-1 if kind == "argmax" else 1) * (np.int64(1 << 50) if term.kind == "i" else np.inf)
            places = np.full(some.shape, -1)
            if exists.shape[axes[0]]:
                places = getattr(np, kind)(np.where(exists, numbers, none), axis=axes[0], keepdims=True)
                places = np.where(some, places + self.of[over[0]].at[0], -1)
            return Value(f"({kind}({over[0]}) ({term.text}))", "i", max(1, int(np.abs(places).max(initial=1))), free,
                         places.astype(np.int64))
        if not some.all():
            kind = "sum"
        count = max(1, int(np.prod([self.of[x].size for x in over])))
        if kind == "sum":
            term = self.limited(term, max(1, LIMIT // count))
            numbers = np.where(exists, term.numbers, 0).sum(axis=axes, keepdims=True)
        else:
            nothing = (-1 if kind == "max" else 1) * (1 << 50)
            numbers = getattr(np, kind)(np.where(exists, numbers, nothing), axis=axes, keepdims=True, initial=nothing)
        most = term.most * count if kind == "sum" else term.most
        return Value(f"({kind}({', '.join(over)}) ({term.text}))", term.kind, most, free, numbers)

    def stored_factor(self, k):
        """An operand that earlier statements have computed, which may be a sum of products itself."""
        fits = [n for n, (v, order) in self.intermediates.items() if len(order) > 1 and v.kind in "fi"]
        if not fits:
            return None
        v = self.again(self.random.choice(fits), at=0.6)
        if k not in v.free or len(v.free) > 3:
            return None
        if v.kind == "i":
            v = self.to("f32", v)
        v = self.limited(v, 16)
        return self.to(self.random.choice(["f16", "bf16"]), v) if self.chance(0.6) else v

    def factor(self, m, k, others, element):
        order = [x for x in self.plain if x == m or (x in others and self.chance(0.4))] + [k] * (m != k)
        v = self.stored_factor(k) if self.chance(0.3) else None
        if v:
            return v
        self.random.shuffle(order)
        v = self.read(self.new_tensor(order, element, 2), order)
        if self.chance(0.3) and element not in INTS:
            w = self.leaf(frozenset(order))
            if w.free <= v.free and w.kind != "i":
                v = self.limited(self.binary(v, w), 32)
        elif self.chance(0.1):
            v = self.read_tensor_at()
        elif self.chance(0.2):
            v = self.to("f16", v)
        return v

    def product(self):
        """A sum of products that instructions multiply, of tensors or of what is computed of one."""
        if len(self.plain) < 2:
            return self.leaf(frozenset())
        k, m = self.random.sample(self.plain, 2)
        others = [x for x in self.plain if x != k]
        n = self.random.choice([x for x in others if x != m] or [k])
        elements = self.random.choice(self.operands)
        v, w = self.factor(m, k, set(others) - {n}, elements[0]), self.factor(n, k, set(others) - {m}, elements[1])
        v, w = self.alike(v, w)
        term = Value(f"{v.text} * {w.text}", v.kind, v.most * w.most, v.free | w.free, v.numbers * w.numbers, v, w)
        if k not in term.free or term.most * max(1, self.of[k].size) > LIMIT:
            return v
        total = self.reduced(term, [k], "sum")
        return Value(f"(sum({k}) {term.text})", total.kind, total.most, total.free, total.numbers)

    def expression(self, depth, wanted=frozenset()):
        kind = self.random.random()
        if depth <= 0 or kind < 0.15:
            return self.leaf(wanted)
        if kind < 0.45:
            v = self.binary(self.expression(depth - 1, wanted), self.expression(depth - 1, wanted))
        elif kind < 0.57:
            v = self.unary(self.expression(depth - 1, wanted), depth, wanted)
        elif kind < 0.64:
            v = self.where(depth - 2, wanted)
        elif kind < 0.8:
            v = self.product()
        else:
            v = self.reduction(depth - 1, wanted)
        return v if len(v.text) < LONGEST else self.leaf(wanted)

    # ---- statements

    def closed(self, v):
        """Without indices that are always reduced."""
        over = [x for x in self.names if x in v.free and self.of[x].dim is None]
        return self.reduced(v, over, "sum") if over else v

    def statement(self, is_output):
        v = self.closed(self.expression(self.random.choice([1, 2, 2, 3])))
        order = sorted(v.free)
        self.random.shuffle(order)
        v.kind = v.kind or "f"
        if is_output:
            name = f"y{len(self.outputs)}"
            fits = [e for e in OUTPUTS[v.kind] if e in INTS or MOST[e] >= v.most]
            element, numbers = self.random.choice(fits[:2] + fits), v.numbers
            if v.kind == "i":
                numbers = np.clip(numbers, {"i8": -128, "u8": 0}.get(element, -(1 << 31)),
                                  MOST[element] if element != "i32" else (1 << 31) - 1)
            stored = Value(name, v.kind, min(v.most, MOST[element] + (element == "i8")), v.free, numbers)
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
        element = self.tensors[name]["element"]
        v = self.limited(self.to(element if element in ("i32", "f64") else "f32", v), MOST[element])
        self.lines.append(f"    {name}[{', '.join(order)}] = {v.text};")
        numbers = np.clip(v.numbers, -128, 127) if element == "i8" else v.numbers
        stored = Value(name, v.kind, v.most, old.free, np.broadcast_to(numbers, self.shape(order)))
        self.outputs[name] = (element, order, stored)
        self.intermediates[name] = (stored, order)

    def draw(self):
        changed = None
        if self.chance(0.3):
            order = self.random.sample(self.plain, min(len(self.plain), 2))
            changed = self.new_tensor(order, self.random.choice(["f32", "f32", "i32", "f16"]), 4, "inout"), order
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            self.statement(False)
        if changed and self.chance(0.5):
            self.update(*changed)
            changed = None
        for _ in range(self.random.choice([1, 1, 2, 3])):
            self.statement(True)
            if self.chance(0.2):
                self.statement(False)
        if changed:
            self.update(*changed)

    # ---- the text

    def add_output(self, name, v, order):
        self.outputs[name] = ({"i": "i32", "d": "f64"}.get(v.kind, "f32"), order, v)

    def without_idle_domains(self, body):
        reduced = {x for names in re.findall(REDUCED, body) for x in names.split(", ")}
        for x in self.domains:
            if x not in reduced:
                body = re.sub(rf"    index {x}: .*\n?", "", body)
        return body

    def subscript(self, name, dims):
        return (f"[{', '.join(dims)}]" if dims else "") + (" strided" if self.strides[name] else "")

    def text(self):
        """Somewhere an index is a coordinate by itself, and everything that is defined is used."""
        body = self.without_idle_domains("\n".join(self.lines))
        alone = {c for at in re.findall(r"\b[xy]\d+\[([^\[\]]*)\]", body) for c in at.split(", ")}
        of_tensors = {d for n, t in self.tensors.items() if re.search(rf"\b{n}\b", body) for d in t["dims"]} | {
            self.of[i].dim for _, o, _ in self.outputs.values() for i in o}
        for x in self.plain:
            dim = self.of[x].dim
            named = dim in self.sizes and dim not in of_tensors and re.search(rf"\b{dim}\b", body)
            if named or (x not in alone and re.search(rf"\b{x}\b", body)):
                out = f"y{len(self.outputs)}"
                of_tensors.add(dim)
                self.add_output(out, Value(out, "i", self.of[x].size, [x], self.along(x)), [x])
                body += f"\n    {out}[{x}] = {x};"
        for name, (value, order) in self.intermediates.items():
            if name[0] == "t" and len(re.findall(rf"\b{name}\b", body)) < 2:
                out = f"y{len(self.outputs)}"
                subscript = f"[{', '.join(order)}]" if order else ""
                self.add_output(out, value, order)
                body += f"\n    {out}{subscript} = {name}{subscript};"
        self.tensors = {n: t for n, t in self.tensors.items() if re.search(rf"\b{n}\b", body)}
        for name, (_, order, _) in self.outputs.items():
            self.strides_of(name, order)
        parameters = ", ".join(("inout " if t["role"] == "inout" else "") + f"{n}: {t['element']}" +
                               self.subscript(n, t["dims"]) for n, t in self.tensors.items())
        outputs = ", ".join(f"{n}: {e}" + self.subscript(n, [self.of[x].dim for x in o])
                            for n, (e, o, _) in self.outputs.items() if n[0] == "y")
        head = f"kernel f({parameters})" + (f" -> ({outputs})" if outputs else "")
        consts = "".join(f"const {c} = {n};\n" for c, n in self.consts.items() if re.search(rf"\b{c}\b", head + body))
        return f"{consts}{head}\n{{\n{body}\n}}\n"

    def extents(self):
        """Of symbolic dimensions that tensors have, and their strides."""
        used = {d for t in self.tensors.values() for d in t["dims"]} | {
            self.of[x].dim for _, o, _ in self.outputs.values() for x in o}
        strides = {f"{name}_stride_{d}": stride for name in [*self.tensors, *self.outputs]
                   for d, stride in enumerate(self.strides[name] or [])}
        return {d: n for d, n in self.sizes.items() if d in used} | strides

    def expected(self, name):
        _, order, v = self.outputs[name]
        return self.packed(v.numbers, order)
