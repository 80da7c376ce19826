"""Kernels called with arrays of the host, which the interpreter computes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import array
import copy
import inspect
import pathlib
import pickle
import pydoc
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock
import warnings

import numpy as np

import tcc

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

try:
    import jax.numpy as jnp
except ImportError:
    jnp = None

LAYER = """
kernel layer(A: f16[M, K], B: f16[K, N], bias: f32[N], alpha: f32) -> (C: f16[M, N])
{
    acc[m, n] = sum(k) A[m, k] * B[k, n];
    C[m, n]   = relu(alpha * acc[m, n] + bias[n]);
}
"""
M, K, N = 5, 24, 11


def numbers(shape, dtype=np.float16, seed=0):
    """Small whole numbers, of which sums are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


class Layer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.layer = tcc.jit(LAYER, tiles=1)
        cls.arguments = numbers((M, K)), numbers((K, N), seed=1), numbers(N, np.float32, 2), 0.5
        a, b, bias, alpha = (np.asarray(x, np.float64) for x in cls.arguments)
        cls.expected = np.maximum(alpha * (a @ b) + bias, 0).astype(np.float16)

    def assert_error(self, message, *args, **named):
        with self.assertRaises(tcc.ArgumentError) as caught:
            self.layer(*args, **named)
        self.assertEqual(str(caught.exception), message)

    def test_computes(self):
        c = self.layer(*self.arguments)
        self.assertIs(type(c), np.ndarray)
        self.assertEqual(c.dtype, np.float16)
        np.testing.assert_array_equal(c, self.expected)

    def test_arguments_have_names(self):
        a, b, bias, alpha = self.arguments
        np.testing.assert_array_equal(self.layer(a, bias=bias, alpha=alpha, B=b), self.expected)
        signature = "layer(A: f16[M, K], B: f16[K, N], bias: f32[N], alpha: f32) -> (C: f16[M, N])"
        self.assertEqual(str(self.layer), signature)
        self.assert_error(f"layer lacks 'B', 'alpha': {signature}", a, bias=bias)
        self.assert_error(f"layer has no parameter 'C': {signature}", a, b, bias, C=a)
        self.assert_error("layer was given 'A' twice", a, b, bias, alpha, A=a)
        self.assert_error(f"layer takes 4 arguments, and 5 were given: {signature}", a, b, bias, alpha, a)

    def test_writes_where_it_is_told(self):
        for give in (lambda c: c, lambda c: (c,), lambda c: {"C": c}):
            c = np.full((M, N), np.nan, np.float16)
            out = give(c)
            self.assertIs(self.layer(*self.arguments, out=out), out)
            np.testing.assert_array_equal(c, self.expected)
        fixed = np.zeros((M, N), np.float16)
        fixed.flags.writeable = False
        self.assert_error("layer: 'C' is written, and the array is read-only", *self.arguments, out=fixed)
        self.assert_error("layer: out= has 2 arrays, expected one for each output: C", *self.arguments, out=(c, c))
        self.assert_error(f"layer has no output 'D': {self.layer}", *self.arguments, out={"D": c})
        self.assert_error(f"layer: dimension 1 of 'C', N in C: f16[M, N], is 12, and {N} in 'B'", *self.arguments,
                          out=np.zeros((M, N + 1), np.float16))

    def test_shapes_are_checked(self):
        a, b, bias, alpha = self.arguments
        self.assert_error(f"layer: dimension 0 of 'B', K in B: f16[K, N], is 3, and {K} in 'A'", a, b[:3], bias, alpha)
        self.assert_error("layer: 'A' has 3 dimensions, expected 2: A: f16[M, K]", a[None], b, bias, alpha)

    def test_types_are_checked(self):
        a, b, bias, alpha = self.arguments
        self.assert_error("layer: 'A' has dtype float32, expected float16 for f16", a.astype(np.float32), b, bias, alpha)
        self.assert_error("layer: 'A' is of the byte order of another machine: >f2", a.astype(">f2"), b, bias, alpha)
        self.assert_error("layer: 'A' is not an array: str has neither __dlpack__ nor __cuda_array_interface__ nor a "
                          "buffer", "A", b, bias, alpha)
        self.assert_error("layer: 'alpha' is a scalar, and got list", a, b, bias, [1])
        self.assert_error("layer: 'alpha' is a scalar, and got str", a, b, bias, "1")

    def test_sources_are_text_or_paths(self):
        for source in b"kernel", 5, None:
            with self.assertRaisesRegex(TypeError, f"a pathlib.Path, and got {type(source).__name__}"):
                tcc.jit(source)

    def test_paths_as_text_are_told(self):
        with tempfile.NamedTemporaryFile(suffix=".txt") as there:
            for path in "layer.tile", "no/such/layer.tir", there.name:
                with self.assertRaises(tcc.ArgumentError) as caught:
                    tcc.jit(path)
                self.assertEqual(str(caught.exception), f"source is the text of a program, and '{path}' is a path: pass "
                                                        f"pathlib.Path('{path}')")
        with self.assertRaises(FileNotFoundError):
            tcc.jit(pathlib.Path("layer.tile"))

    def test_options_are_checked(self):
        for tiles in -1, 2**32, 1.5, "1", None:
            with self.assertRaises(tcc.ArgumentError) as caught:
                tcc.jit(LAYER, tiles=tiles)
            self.assertEqual(str(caught.exception), f"tiles= is {tiles!r}, expected a whole number, at least 0")
        for number in 2**63, -2**63 - 1, 4.5, "4":
            with self.assertRaises(tcc.ArgumentError) as caught:
                tcc.jit(LAYER, defines={"N": number})
            self.assertEqual(str(caught.exception), f"defines= has {number!r} for 'N', expected a whole number of 64 bits")
        with self.assertRaisesRegex(tcc.Error, "^target='native' is the GPU's, and there is no GPU: libcuda.so.1: "):
            tcc.jit(LAYER, target="native")

    def test_warnings_are_at_the_line_that_caused_them(self):
        source = ("kernel copy(A: f32[M, N]) -> (B: f32[M, N]) { B[m, n] = A[m, n]; }\n"
                  "schedule copy for sm_90a { stages 4; }")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            line = inspect.currentframe().f_lineno + 1
            copy = tcc.jit(source, target="sm_90a", on="interp")
            copy.ptx
            copy.ir("tile")
        self.assertEqual([(w.filename, w.lineno - line) for w in caught], [(__file__, i) for i in range(3)])
        self.assertIn("has no effect", str(caught[0].message))

    def test_strides_are_checked(self):
        a, b, bias, alpha = self.arguments
        at = np.ascontiguousarray(a.T).T
        self.assert_error(f"layer: 'A' is not contiguous: its shape is ({M}, {K}), its strides (1, {M}); pass a "
                          "row-major copy, or declare it strided", at, b, bias, alpha)
        one = self.layer(np.asfortranarray(a[:1]), b, bias, alpha)  # of one row any stride is right
        np.testing.assert_array_equal(one, self.expected[:1])

    def test_operators_require_a_new_torch(self):
        old = types.SimpleNamespace(library=types.SimpleNamespace(), __version__="1.13.1")
        with unittest.mock.patch.dict(sys.modules, torch=old):
            with self.assertRaisesRegex(tcc.Error, "require torch 2.4 or later, and this is 1.13.1: install a later one"):
                self.layer.torch_op()

    def test_f64(self):
        copy = tcc.jit("kernel copy(A: f64[M], s: f64) -> (C: f64[M]) { C[m] = A[m] * s; }")
        a, c = np.array([0.1, -2, 1e300]), np.full(3, np.nan)
        copy(a, 3, out=c)
        np.testing.assert_array_equal(c, a * 3)
        np.testing.assert_array_equal(copy(a, 3), a * 3)

    def test_empty_arrays(self):
        a, b, bias, alpha = self.arguments
        self.assertEqual(self.layer(a[:0], b, bias, alpha).shape, (0, N))
        nothing = self.layer(a[:, :0].copy(), b[:0], bias, alpha)
        np.testing.assert_array_equal(nothing, np.tile(np.maximum(bias, 0), (M, 1)).astype(np.float16))

    def test_other_arrays_of_the_host(self):
        class OnlyDLPack:
            def __init__(self, x):
                self.x = x

            def __dlpack__(self, **named):
                return self.x.__dlpack__(**named)

        a, b, bias, alpha = self.arguments
        c = self.layer(OnlyDLPack(a), OnlyDLPack(b), array.array("f", bias), alpha)
        np.testing.assert_array_equal(c, self.expected)
        read_only = memoryview(bias.tobytes()).cast("f")
        np.testing.assert_array_equal(self.layer(a, b, read_only, alpha), self.expected)

    @unittest.skipUnless(jnp, "needs jax")
    def test_jax(self):
        a, b, bias, alpha = self.arguments
        c = self.layer(jnp.asarray(a), b, bias, alpha)
        self.assertIs(type(c), type(jnp.asarray(a)))
        np.testing.assert_array_equal(np.asarray(c), self.expected)
        self.assert_error("layer: 'C' is written, and the array is read-only", *self.arguments, out=c)

    def test_memory_that_is_not_given(self):
        class Closed:
            def __dlpack__(self, **named):
                raise BufferError("no")

        a, b, bias, alpha = self.arguments
        self.assert_error("layer: 'B' cannot be accessed through DLPack: no", a, Closed(), bias, alpha)

    def test_masked_arrays_are_refused(self):
        a, b, bias, alpha = self.arguments
        for mask in a > 0, np.zeros_like(a, bool):
            self.assert_error("layer: 'A' has a mask, which kernels do not; pass its filled(…), or its data",
                              np.ma.array(a, mask=mask), b, bias, alpha)
        out = np.ma.array(np.zeros((M, N), np.float16), mask=True)
        self.assert_error("layer: 'C' has a mask, which kernels do not; pass its filled(…), or its data", *self.arguments,
                          out=out)
        self.assert_error("layer: 'alpha' is a scalar, and got MaskedConstant", a, b, bias, np.ma.masked)
        np.testing.assert_array_equal(self.layer(np.ma.array(a), b, bias, alpha), self.expected)

    def test_elements_side_by_side_with_others_are_not_contiguous(self):
        a, b, bias, alpha = self.arguments
        odd = np.zeros(N, [("x", np.float32), ("y", np.int8)])["x"]
        message = f"layer: 'bias' is not contiguous: its shape is ({N},), its strides (5,) bytes; pass a row-major copy"
        self.assert_error(message, a, b, odd, alpha)
        self.assert_error(message, a, b, memoryview(odd), alpha)

    def test_memory_that_is_written_is_not_shared(self):
        square = tcc.jit("kernel p(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N], D: f16[M, N])"
                         " { acc[m, n] = sum(k) A[m, k] * B[k, n]; C[m, n] = acc[m, n]; D[m, n] = -acc[m, n]; }", tiles=1)
        memory = numbers((64, 16))
        a, b, c, d = (memory[i:i + 16] for i in range(0, 64, 16))
        square(a, a, out=(c, d))
        for out, one, other in (((a, d), "C", "A"), ((c, b), "D", "B"), ((c, c), "C", "D"),
                                ((memory[17:33], d), "C", "B"), ((memory[15:31], d), "C", "A")):
            with self.assertRaises(tcc.ArgumentError) as caught:
                square(a, b, out=out)
            self.assertEqual(str(caught.exception), f"p: '{one}', which is written, shares memory with '{other}': pass a "
                                                    "copy of one of them")
        add = tcc.jit("kernel add(A: f32[M], inout U: f32[M]) { U[m] = U[m] + A[m]; }")
        u = np.ones(4, np.float32)
        for x in u, u[:], memoryview(u):
            with self.assertRaisesRegex(tcc.ArgumentError, "'U', which is written, shares memory with 'A'"):
                add(x, u)
        add(u[:0], u[:0])

    def test_threads(self):
        results = [None] * 4

        def work(i):
            results[i] = self.layer(*self.arguments)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for c in results:
            np.testing.assert_array_equal(c, self.expected)


class Programs(unittest.TestCase):
    def test_several_kernels_and_outputs(self):
        two = """
            kernel first(A: f32[M, N]) -> (B: f32[M, N]) { B[m, n] = A[m, n] + 1; }
            kernel second(A: f32[M, 4], inout U: f32[M, 4]) -> (B: f32[M, 4], C: f16[M, 4])
            {
                B[m, n] = A[m, n] + U[m, n];
                C[m, n] = A[m, n];
                U[m, n] = 2 * A[m, n];
            }
            kernel third(inout U: f32[M, N]) { U[m, n] = U[m, n] + 3; }"""
        with self.assertRaisesRegex(tcc.ArgumentError, "several kernels: say which with kernel=, of first, second, third"):
            tcc.jit(two)
        with self.assertRaisesRegex(tcc.ArgumentError, "no kernel 'fourth': it has first, second, third"):
            tcc.jit(two, kernel="fourth")
        second = tcc.jit(two, kernel="second")
        a, u = numbers((3, 4), np.float32), numbers((3, 4), np.float32, 1)
        b, c = second(a, u.copy())
        np.testing.assert_array_equal(b, a + u)
        np.testing.assert_array_equal(c, a.astype(np.float16))
        second(a, u)
        np.testing.assert_array_equal(u, 2 * a)
        with self.assertRaisesRegex(tcc.ArgumentError, r"dimension 1 of 'A', in A: f32\[M, 4\], is 5, and 4 in the kernel"):
            second(np.zeros((3, 5), np.float32), u)
        self.assertEqual([a.role for a in second.args], ["in", "inout", "out", "out"])
        third = tcc.jit(two, kernel="third")
        before = u.copy()
        self.assertIsNone(third(u))
        np.testing.assert_array_equal(u, before + 3)

    def test_outputs_without_dimensions(self):
        both = tcc.jit("kernel both(A: f32[M, N]) -> (S: f32, T: f16[M])"
                       " { S = sum(m, n) A[m, n]; T[m] = max(n) A[m, n]; }")
        a, s = numbers((3, 4), np.float32), np.zeros((), np.float32)
        total, most = both(a)
        self.assertEqual((total.shape, total.dtype, total), ((), np.float32, a.sum()))
        np.testing.assert_array_equal(most, a.max(1).astype(np.float16))
        both(a, out=(s, most))
        self.assertEqual(s, a.sum())
        with self.assertRaisesRegex(tcc.ArgumentError, "'S' has 1 dimensions, expected 0: S: f32"):
            both(a, out=(np.zeros(1, np.float32), most))
        steps = [step.split()[2] for step in both.plan.splitlines() if "step" in step]
        self.assertEqual(steps, ["both__sum", "both__sum2", "both__S", "both"])

    def test_scalars_must_fit_in_their_type(self):
        f = tcc.jit("kernel f(A: f32[M], n: i32, h: f16, b: bf16, s: f32, d: f64) -> (B: f32[M], C: f64[M], D: i32[M])"
                    " { B[m] = A[m] * f32(h) * f32(b) * s; C[m] = f64(A[m]) * d; D[m] = i32(A[m]) + n; }")
        good = {"n": -2**31 + 9, "h": 65519, "b": 3e38, "s": 0.1, "d": 1e300}
        for name, number in (("n", 2.0), ("n", np.int64(7)), ("n", True), ("h", float("-inf")), ("s", float("nan")),
                             ("s", 1e-60), ("d", 2**1000)):
            f(np.ones(1, np.float32), **{**good, name: number})
        whole = "a whole number from -2147483648 to 2147483647 for i32"
        for name, number, expected in (
                ("n", 2.5, whole), ("n", 2**40, whole), ("n", float("nan"), whole), ("n", float("inf"), whole),
                ("n", 10**400, whole), ("n", np.float32(0.5), whole), ("n", np.array(2**31), whole),
                ("h", 65520, "a number below 65520 for f16"), ("h", -1e6, "a number below 65520 for f16"),
                ("b", 1e39, "a number below 3.39618e+38 for bf16"), ("s", 1e39, "a number below 3.40282e+38 for f32"),
                ("d", 10**400, "a number below inf for f64")):
            with self.assertRaises(tcc.ArgumentError) as caught:
                f(np.ones(1, np.float32), **{**good, name: number})
            self.assertEqual(str(caught.exception), f"f: '{name}' is {number}, expected {expected}")

    def test_files_and_defines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "add.tile")
            path.write_text("const C = 1;\nkernel add(A: f32[M, N]) -> (B: f32[M, N]) { B[m, n] = A[m, n] + C; }")
            add = tcc.jit(path, defines={"C": 5, "N": 3})
            self.assertEqual(add.dims, ("M",))
            np.testing.assert_array_equal(add(np.zeros((2, 3), np.float32)), np.full((2, 3), 5))
            path.write_text("kernel add(A: f32[M, N]) -> (B: f32[M, N]) { B[m, n] = X[m, n]; }")
            with self.assertRaises(tcc.CompileError) as caught:
                tcc.jit(path)
            self.assertIn(f"{path}:1:56: error: ", str(caught.exception))

    def test_errors_have_carets(self):
        with self.assertRaises(tcc.CompileError) as caught:
            tcc.jit("kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n{\n"
                    "    C[m, n] = sum(k) A[m, k] * B[k, n];\n    D[m, n] = 1 < 2;\n}\n")
        error = caught.exception
        self.assertEqual(error.status, "type error")
        self.assertIn("    C[m, n] = sum(k) A[m, k] * B[k, n];\n", str(error))
        self.assertRegex(str(error), r"\n {24,}\^")
        self.assertGreater(sum(d.severity == "error" for d in error.diagnostics), 1)
        shown = error._render_traceback_()
        self.assertRegex(shown[0], "^\x1b\\[1;31m<source>:3:.*: error: .*\x1b\\[0m$")
        self.assertEqual(shown[1], "    C[m, n] = sum(k) A[m, k] * B[k, n];")
        with self.assertRaisesRegex(tcc.CompileError, "no target is named 'sm_1'"):
            tcc.jit(LAYER, target="sm_1")
        with self.assertRaisesRegex(tcc.CompileError, "not supported yet: target 'RTX 4090'; the nearest is sm_89, which is"):
            tcc.jit(LAYER, target="RTX 4090")
        with self.assertRaises(tcc.CompileError):
            tcc.jit("kernel f\0")

    def test_what_was_compiled_can_be_looked_at(self):
        layer = tcc.jit(LAYER, tiles=1)
        self.assertIn(".visible .entry layer", layer.ptx)
        self.assertIn("schedule layer for sm_90a", layer.schedule)
        self.assertIn('"name":"layer"', layer.manifest)
        for level, op in (("tensor", "tensor."), ("tile", "tile.mma"), ("async", "async.acquire"), ("target", "nvvm.wgmma")):
            self.assertIn(op, layer.ir(level))
        with self.assertRaisesRegex(tcc.ArgumentError, "no level 'x': tensor, tile, async, target"):
            layer.ir("x")
        try:
            self.assertRegex(layer.sass, r"(?m)^layer:\n(.*\n)*// <source>:\d+: .*sum.*\n(.*\n)*.* HGMMA\.")
        except tcc.LibraryError as error:  # where there is no CUDA toolkit
            self.assertRegex(str(error), "(ptxas|nvdisasm) was not found")
        self.assertIn("layer(A: f16[M, K]", repr(layer))
        self.assertTrue(repr(layer).endswith(" for sm_90a>"))

    def test_kernels_are_copied_and_pickled(self):
        layer = tcc.jit(LAYER + "kernel other(A: f16[N]) -> (B: f16[N]) { B[n] = A[n]; }", kernel="layer", tiles=1)
        self.assertIs(copy.copy(layer), layer)
        self.assertIs(copy.deepcopy([layer])[0], layer)
        other = pickle.loads(pickle.dumps(layer))
        self.assertEqual(str(other), str(layer))
        self.assertEqual(other.identity, layer.identity)
        self.assertNotEqual(other.identity, tcc.jit(LAYER, kernel="layer", tiles=1).identity)
        self.assertNotEqual(tcc.jit(LAYER, tiles=1, interpret=True).identity, tcc.jit(LAYER, tiles=1).identity)
        a, b = numbers((2, 8)), numbers((8, 3), seed=1)
        bias = numbers(3, np.float32, 2)
        np.testing.assert_array_equal(other(a, b, bias, 2), layer(a, b, bias, 2))

    def test_kernels_have_a_signature(self):
        signature = inspect.signature(tcc.jit(LAYER, tiles=1))
        self.assertEqual(str(signature), "(A: 'f16[M, K]', B: 'f16[K, N]', bias: 'f32[N]', alpha: 'f32', *, out=None, "
                                         "stream=None)")

    def test_help_shows_the_signature(self):
        shown = pydoc.render_doc(tcc.jit(LAYER, tiles=1), renderer=pydoc.plaintext)
        self.assertIn("layer(A: f16[M, K], B: f16[K, N], bias: f32[N], alpha: f32) -> (C: f16[M, N])\n", shown)

    def test_the_variant_is_known(self):
        product = tcc.jit("kernel p(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])"
                          " { C[m, n] = sum(k) A[m, k] * B[n, k]; }", target="sm_90a")
        a, b = numbers((200, 128)), numbers((24, 128), seed=1)
        small, odd = product.variant(a[:16], b), product.variant(a[:, :127].copy(), b[:, :127].copy())
        self.assertRegex(small, "^p__[0-9]+x[0-9]+")
        self.assertNotEqual(small, odd)
        self.assertIsNone(product.variant(a[:0], b))

    def test_timelines(self):
        product = tcc.jit("kernel p(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])"
                          " { C[m, n] = sum(k) A[m, k] * B[n, k]; }", target="sm_90a", tiles=1)
        a, b = numbers((200, 128)), numbers((24, 128), seed=1)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.json")
            timeline = product.timeline(a, B=b, path=path)
            self.assertEqual(path.read_text(), timeline.json)
        self.assertEqual(str(timeline), timeline.summary)
        self.assertRegex(timeline.summary, "^CTA 0: [0-9]+ cycles, tensor cores [0-9.]+ % busy; ")
        last = max(e["ts"] + e["dur"] for e in timeline.events if e["ph"] == "X")
        self.assertGreater(last, 0)
        other = product.timeline(a, b, cta=1)
        self.assertIn("CTA 1", other.json)
        out = np.zeros((200, 24), np.float16)
        product.timeline(a, b, out=out)
        np.testing.assert_array_equal(out, (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float16))
        with self.assertRaisesRegex(tcc.LibraryError, "2 CTAs|no CTA|CTA 99"):
            product.timeline(a, b, cta=99)
        amd = tcc.jit("kernel p(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])"
                      " { C[m, n] = sum(k) A[m, k] * B[n, k]; }", target="gfx1100", tiles=1)
        with self.assertRaisesRegex(tcc.LibraryError, "the timed order models sm_90a, and there is no model of gfx1100"):
            amd.timeline(a, b)
        with self.assertRaisesRegex(tcc.Error, "p: bench needs a GPU that runs sm_90a"):
            product.bench(a, b)

    def test_amds_targets(self):
        layer = tcc.jit(LAYER, target="gfx1100", tiles=1)
        self.assertTrue(layer.code.startswith(b"\x7fELF"))
        with self.assertRaisesRegex(tcc.ArgumentError, "gfx1100 has no PTX"):
            layer.ptx
        with self.assertRaisesRegex(tcc.LibraryError, "no sass for gfx1100"):
            layer.sass
        a, b = numbers((16, 16)), numbers((16, 16), seed=1)
        c = layer(a, b, np.zeros(16, np.float32), 1)
        np.testing.assert_array_equal(c, np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0))


class Dimensions(unittest.TestCase):
    """Dimensions that are computed of others."""

    def test_computed_dimensions(self):
        strips = tcc.jit("""
kernel strips(X: f32[2 * H, W + P - 1], r: f32[P], s: f32[(W + 7) / 8]) -> (Y: f32[H, W], Z: f32[H / 2])
{
    Y[h, w] = s[w / 8] * sum(p) X[2 * h + 1, w + p] * r[p];
    Z[i]    = i;
}
""", target="sm_90a", on="interp", tiles=1)
        x, r, s = numbers((10, 22), np.float32), numbers(3, np.float32, 1), numbers(3, np.float32, 2)
        y, z = strips(x, r, s)
        self.assertEqual(strips.dims, ("H", "W", "P"))
        self.assertEqual(strips.args[0].shape, ("2 * H", "P + W - 1"))
        windows = np.lib.stride_tricks.sliding_window_view(x[1::2], 3, axis=1)
        np.testing.assert_array_equal(y, s[np.arange(20) // 8] * (windows @ r))
        np.testing.assert_array_equal(z, [0, 1])
        for arguments, message in (
                ((x, r, s[:2]), "dimension 0 of 's', (W + 7) / 8 in s: f32[(W + 7) / 8], is 2, and 3 with W 20"),
                ((x[:9].copy(), r, s), "the shapes of its arguments leave open what H is: " + str(strips._signature)),
                ((x[:, :1].copy(), r, s), "the shapes of its arguments leave open what W is: " + str(strips._signature))):
            with self.assertRaises(tcc.ArgumentError) as caught:
                strips(*arguments)
            self.assertEqual(str(caught.exception), "strips: " + message)


class Elements(unittest.TestCase):
    def product(self, a, b, element, sums="f32", target=None):
        k = tcc.jit(f"kernel p(A: {element}[M, K], B: {element}[N, K]) -> (C: {sums}[M, N])"
                    "{ C[m, n] = sum(k) A[m, k] * B[n, k]; }", target=target, tiles=1)
        return k(a, b)

    def check(self, dtype, element, sums="f32", target=None):
        a, b = numbers((9, 32), dtype), numbers((8, 32), dtype, 1)
        expected = a.astype(np.float64) @ b.astype(np.float64).T
        np.testing.assert_array_equal(self.product(a, b, element, sums, target), expected)

    def test_bytes(self):
        self.check(np.int8, "i8", "i32", "sm_80")

    @unittest.skipUnless(ml_dtypes, "numpy has these with ml_dtypes alone")
    def test_ml_dtypes(self):
        self.check(ml_dtypes.bfloat16, "bf16")
        self.check(ml_dtypes.float8_e4m3fn, "e4m3", "f32", "gfx1200")
        self.check(ml_dtypes.float8_e5m2, "e5m2", "f32", "gfx1200")
        self.check(ml_dtypes.int4, "i4", "i32", "gfx1100")

    @unittest.skipUnless(ml_dtypes, "numpy has these with ml_dtypes alone")
    def test_results_of_ml_dtypes(self):
        k = tcc.jit("kernel r(A: f32[M, N]) -> (B: bf16[M, N]) { B[m, n] = A[m, n]; }")
        a = numbers((3, 4), np.float32)
        b = k(a)
        self.assertEqual(b.dtype, ml_dtypes.bfloat16)
        np.testing.assert_array_equal(b.astype(np.float32), a)

    def test_packed(self):
        a, b = numbers((9, 32), np.int8), numbers((8, 32), np.int8, 1)
        packed = [x[:, ::2].view(np.uint8) & 15 | x[:, 1::2].view(np.uint8) << 4 for x in (a, b)]
        expected = a.astype(np.int32) @ b.astype(np.int32).T
        np.testing.assert_array_equal(self.product(*packed, "i4", "i32", "gfx1100"), expected)
        with self.assertRaisesRegex(tcc.ArgumentError, "has dtype int8, expected int4, or uint8 with two elements in each byte, for i4"):
            self.product(a, b, "i4", "i32", "gfx1100")


if __name__ == "__main__":
    unittest.main()
