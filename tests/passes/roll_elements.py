"""Writes IR with expressions of a given length, for roll_elements.test."""


def func(name, params, body):
    print(f"func @{name}({params}, %p: ptr<f32>, %q: ptr<f16>, %at: i64, %yes: i1) {{")
    for line in body:
        print("  " + line)
    print("  return\n}")


def chain(vec, first, n, name, other="%y"):
    """n ops, each of the one before; the last one's name."""
    lines, last = [], first
    for i in range(n):
        lines.append(f"%{name}{i} = arith.{('max', 'min')[i % 2]} {last}, {other} : {vec}")
        last = f"%{name}{i}"
    return lines, last


def store(v, to="%p"):
    return [f"nvvm.st.global {to}, %at, %yes, {v}"]


def one(name, n):
    body, last = chain("vec<f32[8]>", "%x", n, "c")
    func(name, "%x: vec<f32[8]>, %y: vec<f32[8]>", body + store(last))


def alike(n):
    a, x = chain("vec<f32[4]>", "%x", n, "a")
    b, y = chain("vec<f32[4]>", "%z", n, "b")
    both = [line for pair in zip(a, b) for line in pair]
    func("alike", "%x: vec<f32[4]>, %z: vec<f32[4]>, %y: vec<f32[4]>", both + store(x) + store(y))


def constants(n):
    """Of two vecs alike each has its own constants."""
    lines = []
    for name, last in ("a", "%x"), ("b", "%z"):
        for i in range(n):
            lines += [f"%{name}k{i} = arith.const {{value = {i}.5}} : vec<f32[4]>",
                      f"%{name}{i} = arith.add {last}, %{name}k{i} : vec<f32[4]>"]
            last = f"%{name}{i}"
    func("constants", "%x: vec<f32[4]>, %z: vec<f32[4]>", lines + store(f"%a{n - 1}") + store(f"%b{n - 1}"))


def conversions(n):
    body, last = chain("vec<f32[8]>", "%wide", n, "c", "%two")
    func("conversions", "%x: vec<f16[8]>",
         ["%wide = arith.cast %x : vec<f32[8]>", "%two = arith.const {value = 2.0} : vec<f32[8]>"] + body +
         [f"%narrow = arith.cast {last} : vec<f16[8]>"] + store("%narrow", "%q"))


def between(n):
    """A value of the middle is stored there."""
    a, middle = chain("vec<f32[8]>", "%x", n, "a")
    b, last = chain("vec<f32[8]>", middle, n, "b")
    func("between", "%x: vec<f32[8]>, %y: vec<f32[8]>", a + store(middle) + b + store(last))


def functions(n):
    body = [f"%t{i} = math.tanh {f'%t{i - 1}' if i else '%x'} : vec<f32[8]>" for i in range(n)]
    func("functions", "%x: vec<f32[8]>", body + store(f"%t{n - 1}"))


one("short", 256)
one("long", 257)
one("longer", 700)
alike(300)
constants(300)
conversions(300)
between(300)
functions(300)
