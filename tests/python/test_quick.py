"""Calls with tensors of torch on a GPU, of which the quick path takes those it knows: on a stand-in for torch, and on
the stand-in for the CUDA driver that test_gpu.py has.

    test_quick.py --with-extension|--without-extension

Without the extension all of them are left to Python.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes
import gc
import os
import sys
import threading
import tracemalloc
import types
import unittest
import unittest.mock

HAS_EXTENSION = sys.argv.pop(1) == "--with-extension"
if not HAS_EXTENSION:
    sys.modules["tcc._launcher"] = None

import numpy as np

import tcc
from test_gpu import PRODUCT, fake, launches, numbers

os.environ["TCC_CACHE_DIR"] = ""  # nothing is kept
assert HAS_EXTENSION == (tcc._quick._launcher is not None)
M, K, N = 6, 8, 16


class DType:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"torch.{self.name}"


class Tensor:
    """A tensor whose memory is an array's; it is on a GPU unless it is told otherwise."""

    def __init__(self, x, requires_grad=False, is_cuda=True):
        self.x, self.requires_grad, self.is_cuda, self.is_cpu = x, requires_grad, is_cuda, not is_cuda
        self.device = "cuda:0" if is_cuda else "cpu"

    shape = property(lambda self: self.x.shape)
    dtype = property(lambda self: getattr(torch, self.x.dtype.name))

    def stride(self):
        return tuple(s // self.x.itemsize for s in self.x.strides)

    def is_contiguous(self):
        return self.x.flags.c_contiguous

    is_nested = is_negated = False
    layout = property(lambda self: torch.strided)

    def is_neg(self):
        return self.is_negated

    def numel(self):
        return self.x.size

    def get_device(self):
        return 0 if self.is_cuda else -1

    def data_ptr(self):
        return self.x.ctypes.data

    def new_empty(self, shape, dtype):
        return type(self)(np.full(shape, np.nan if dtype.name.startswith("float") else 77, dtype.name))


class Parameter(Tensor):
    """Of a subclass, as torch.nn's."""


torch = types.ModuleType("torch")
torch.Tensor, torch.strided = Tensor, object()
for name in "float16", "float32", "int8", "uint8", "int32":
    setattr(torch, name, DType(name))
torch.is_grad_enabled = lambda: torch.records
torch.records, torch.stream = True, 0x40
torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: torch.stream + ordinal)
sys.modules["torch"] = torch


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Exchange(ctypes.Structure):
    """DLPack's DLPackExchangeAPI."""

    FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
                ("managed", ctypes.c_void_p * 3), ("from_object", FROM_OBJECT), ("stream", ctypes.c_void_p)]


exchanged = []


@Exchange.FROM_OBJECT
def from_object(tensor, out):
    exchanged.append(tensor)
    x = tensor.x
    try:
        address = tensor.data_ptr()
    except BaseException:  # which does not come out of a callback
        return -1
    extents = tensor.__dict__.setdefault(
        "extents", ((ctypes.c_int64 * x.ndim)(*x.shape), (ctypes.c_int64 * x.ndim)(*tensor.stride())))
    out[0] = DLTensor(address - 2, 2 if tensor.is_cuda else 14, 0, x.ndim, "iuf".index(x.dtype.kind), 8 * x.itemsize, 1,
                      *extents, 2)
    return 0


exchange = Exchange(1, 3, None, (None,) * 3, from_object, None)
ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule = ctypes.pythonapi.PyCapsule_New(ctypes.addressof(exchange), b"dlpack_exchange_api", None)


def product_of(a, b):
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)


def quick():
    """Within it a call that the quick path does not take is an error."""
    if not HAS_EXTENSION:
        return unittest.mock.MagicMock()
    return unittest.mock.patch.object(tcc.Kernel, "_run", side_effect=AssertionError("Python is to look"))


class Products(unittest.TestCase):
    def setUp(self):
        fake.reset(0)
        torch.records = True
        self.product = tcc.jit(PRODUCT, tiles=1)
        x, y = numbers((M, K)), numbers((K, N), 1)
        self.a, self.b, self.c = Tensor(x), Tensor(y), Tensor(np.full((M, N), np.nan, np.float16))
        self.expected = product_of(x, y)
        self.product(x, y)  # from here on a GPU is current
        fake.reset(0)

    def check(self, c):
        np.testing.assert_array_equal(c.x, self.expected)
        c.x.fill(np.nan)


class Calls(Products):
    def test_the_package_has_one_folder(self):
        self.assertEqual(list(tcc.__path__), [os.path.dirname(tcc.__file__)])

    def test_out(self):
        self.assertIs(self.product(self.a, self.b, out=self.c), self.c)
        self.check(self.c)
        with quick():
            for out in self.c, (self.c,):
                self.assertIs(self.product(self.a, self.b, out=out), out)
                self.check(self.c)
            self.product(B=self.b, A=self.a, out=self.c)
        self.check(self.c)
        for out in [self.c], {"C": self.c}:
            self.assertIs(self.product(self.a, self.b, out=out), out)
            self.check(self.c)

    def test_new_outputs(self):
        first = self.product(self.a, self.b)
        with quick():
            second = self.product(self.a, self.b)
            self.assertIsNot(first, second)
            parameter = Parameter(self.a.x)
        self.assertIs(type(self.product(parameter, self.b)), Parameter)
        with quick():
            third = self.product(parameter, self.b)
        self.assertIs(type(third), Parameter)
        for c in first, second, third:
            self.check(c)

    def test_several_outputs_and_none(self):
        both = tcc.jit("kernel both(A: f32[M, N], inout U: f32[M, N]) -> (B: f16[M, N], C: f32[N, M])"
                       " { B[m, n] = A[m, n]; C[n, m] = U[m, n]; U[m, n] = A[m, n]; }", tiles=1)
        none = tcc.jit("kernel none(A: f32[M, N], inout U: f32[M, N]) { U[m, n] = U[m, n] + A[m, n]; }", tiles=1)
        total = tcc.jit("kernel total(A: f32[M, N]) -> (S: f32) { S = sum(m, n) A[m, n]; }")
        a, u = (Tensor(np.ones((3, 5), np.float32)) for _ in range(2))
        for how in unittest.mock.MagicMock(), quick():
            with how:
                b, c = both(a, u)
                self.assertEqual([(x.shape, str(x.dtype)) for x in (b, c)],
                                 [((3, 5), "torch.float16"), ((5, 3), "torch.float32")])
                self.assertEqual(both(a, u, out=(b, c)), (b, c))
                self.assertIsNone(none(a, u))
                self.assertEqual((total(a).shape, str(total(a).dtype)), ((), "torch.float32"))
        self.assertEqual(len(launches()), 16)
        with self.assertRaisesRegex(tcc.ArgumentError, "out= has 1 arrays, expected one for each output: B, C"):
            both(a, u, out=b)

    def test_numbers(self):
        scale = tcc.jit("kernel scale(A: f32[M, N], alpha: f32) -> (B: f32[M, N])"
                        " { B[m, n] = alpha * A[m, n]; }", tiles=1)
        a = Tensor(np.ones((4, 8), np.float32))
        b = scale(a, 1.0)
        scale(a, 1.0, out=b)
        fake.reset(5)
        with quick():
            scale(a, 2.5, out=b)
            scale(a, 3, out=b)
        scale(a, np.float32(4.5), out=b)
        scale(a, True, out=b)
        alphas = [ctypes.c_float.from_buffer_copy(x, type(x).params.offset).value for x in launches()]
        self.assertEqual(alphas, [2.5, 3, 4.5, 1])
        for number, kind in ("x", "str"), (None, "NoneType"):
            with self.assertRaisesRegex(tcc.ArgumentError, f"'alpha' is a scalar, and got {kind}"):
                scale(a, number, out=b)
        for number in 10**400, 1e39, -2.0**128:
            with self.assertRaisesRegex(tcc.ArgumentError, "expected a number below 3.40282e\\+38 for f32"):
                scale(a, number, out=b)
        with quick():
            scale(a, float("inf"), out=b)
            scale(a, float("nan"), out=b)

    def test_whole_numbers(self):
        shift = tcc.jit("kernel shift(A: i32[M, N], n: i32) -> (B: i32[M, N]) { B[m, n2] = A[m, n2] + n; }", tiles=1)
        a, b = (Tensor(np.ones((4, 8), np.int32)) for _ in range(2))
        shift(a, 1, out=b)
        with quick():
            shift(a, -2**31, out=b)
            shift(a, 2.0, out=b)
        for number in 2.5, 2**31, -2**31 - 1, 2**40, float("nan"), float("inf"):
            with self.assertRaisesRegex(tcc.ArgumentError, "'n' is .*, expected a whole number from -2147483648 to "):
                shift(a, number, out=b)

    def test_memory_that_is_written_is_not_shared(self):
        square, memory = numbers((16, 16)), np.zeros((32, 16), np.float16)
        a, b, c = Tensor(square), Tensor(memory[:16]), Tensor(memory[16:])
        self.product(a, b, out=c)
        with quick():
            self.product(b, b, out=c)
        for x, y, out, name in ((a, b, b, "B"), (b, a, Tensor(memory[8:24]), "A"), (c, a, Tensor(memory[15:31]), "A")):
            with self.assertRaisesRegex(tcc.ArgumentError, f"'C', which is written, shares memory with '{name}'"):
                self.product(x, y, out=out)
        add = tcc.jit("kernel add(A: f16[M, N], inout U: f16[M, N]) -> (B: f16[M, N])"
                      " { B[m, n] = A[m, n]; U[m, n] = U[m, n] + A[m, n]; }", tiles=1)
        add(a, b)
        with quick():
            add(a, c)
        with self.assertRaisesRegex(tcc.ArgumentError, "'U', which is written, shares memory with 'A'"):
            add(b, b)

    def test_tensors_that_are_not_what_their_memory_says(self):
        a, c = self.a, self.c
        self.product(a, self.b, out=c)
        negated, void = Tensor(self.b.x), Tensor(self.b.x)
        negated.is_negated, void.data_ptr = True, lambda: 0
        for b, message in (negated, "is negated lazily: .* pass its resolve_neg"), (void, "is a Tensor without memory"):
            with self.assertRaisesRegex(tcc.ArgumentError, f"'B' {message}"):
                self.product(a, b, out=c)

    def test_what_does_not_fit_is_refused(self):
        a, b, c = self.a, self.b, self.c
        self.product(a, b, out=c)
        for arguments, out, message in (
                ((Tensor(numbers((M, K + 1))), b), c, "dimension 0 of 'B', K in B"),
                ((a, b), Tensor(np.zeros((M, N + 1), np.float16)), "dimension 1 of 'C', N in C"),
                ((a, Tensor(b.x.astype(np.float32))), c, "'B' has dtype float32, expected float16 for f16"),
                ((Tensor(np.asfortranarray(a.x)), b), c, "'A' is not contiguous: its shape is"),
                ((a, Tensor(b.x, is_cuda=False)), c, "'A' on GPU 0, but 'B' on the host"),
                ((a, Tensor(b.x, requires_grad=True)), c, "'B' requires a gradient"),
                ((a, b), Tensor(c.x, requires_grad=True), "'C' requires a gradient"),
                ((a, b.x), c, "'A' on GPU 0, but 'B' on the host"),
                ((a, None), c, "'B' is not an array: NoneType"),
                ((a,), c, "lacks 'B'"),
                ((a, b, b), c, "takes 2 arguments, and 3 were given")):
            with self.assertRaisesRegex(tcc.ArgumentError, f"fake_product:? {message}"):
                self.product(*arguments, out=out)
        self.assertEqual(len(launches()), 1)
        other = Tensor(a.x)
        other.is_cuda, other.device = False, "xpu:0"
        with self.assertRaisesRegex(tcc.ArgumentError, "'A' is on the device 'xpu:0', which is neither the host nor"):
            self.product(other, b, out=c)

    def test_parameters_without_derivatives(self):
        weights = Parameter(self.b.x, requires_grad=True)
        torch.records = False
        self.product(self.a, weights, out=self.c)
        with quick():
            self.product(self.a, weights, out=self.c)
        self.check(self.c)
        torch.records = True
        with self.assertRaisesRegex(tcc.ArgumentError, "'B' requires a gradient"):
            self.product(self.a, weights, out=self.c)

    def test_streams(self):
        class Stream:
            cuda_stream = 0xC0

        self.product(self.a, self.b, out=self.c)
        with quick(), unittest.mock.patch.object(torch, "stream", 0x50):
            for stream in None, 0x80, 0, Stream(), 2**64 - 16:
                self.product(self.a, self.b, out=self.c, stream=stream)
        self.assertEqual([x.stream for x in launches()], [0x40, 0x50, 0x80, None, 0xC0, 2**64 - 16])

    def test_shapes(self):
        for m in [1, 2, 3] * 2:
            a, c = Tensor(numbers((m, K))), Tensor(np.full((m, N), np.nan, np.float16))
            self.product(a, self.b, out=c)
            np.testing.assert_array_equal(c.x, product_of(a.x, self.b.x))
        with quick():
            empty = Tensor(np.zeros((0, K), np.float16))
        for _ in range(2):
            self.assertEqual(self.product(empty, self.b).shape, (0, N))

    def test_many_shapes(self):
        a, b = np.zeros((4200, 1), np.float16), Tensor(np.zeros((1, 1), np.float16))
        c = np.zeros((4200, 1), np.float16)
        for m in range(1, 4200):
            self.product(Tensor(a[:m]), b, out=Tensor(c[:m]))
        with quick():
            self.product(Tensor(a), b, out=Tensor(c)) if not HAS_EXTENSION else None
            self.product(Tensor(a[:4199]), b, out=Tensor(c[:4199]))

    def test_failures_are_raised(self):
        self.product(self.a, self.b, out=self.c)
        for _ in range(2):
            fake.make_fail(b"cuLaunchKernel", 700)
            with quick(), self.assertRaisesRegex(tcc.LibraryError, "cuLaunchKernel: an illegal memory access"):
                self.product(self.a, self.b, out=self.c)
            fake.reset(0)
            with quick():
                self.product(self.a, self.b, out=self.c)
            self.check(self.c)

    def test_what_torch_raises(self):
        class Traced(Tensor):
            error = RuntimeError("no address while it is traced")

            def data_ptr(self):
                raise self.error

        self.product(self.a, self.b, out=self.c)
        with self.assertRaisesRegex(RuntimeError, "no address while"):
            self.product(Traced(self.a.x), self.b, out=self.c)
        with unittest.mock.patch.object(Traced, "error", KeyboardInterrupt()), self.assertRaises(KeyboardInterrupt):
            self.product(Traced(self.a.x), self.b, out=self.c)
        self.product(self.a, self.b)
        with unittest.mock.patch.object(Tensor, "new_empty", side_effect=MemoryError("no room")):
            with self.assertRaisesRegex(MemoryError, "no room"):
                self.product(self.a, self.b)
        self.check(self.product(self.a, self.b))

    def test_kernels_for_extents(self):
        a, b = Tensor(np.ones((16, 64), np.float16)), Tensor(np.ones((64, 24), np.float16))
        product = tcc.jit(PRODUCT + f"// {type(self).__name__}", tiles=1, specialize="background")
        shapes = []
        product(a, b)
        for _ in range(2):
            with quick():
                np.testing.assert_array_equal(product(a, b).x, np.full((16, 24), 64, np.float16))
            shapes.append(tuple(launches()[-1].grid) + tuple(launches()[-1].block))
            product.wait()
        self.assertEqual(len(launches()), 3)
        product(a, b)
        with quick():
            product(a, b)
        self.assertNotEqual(tuple(launches()[-1].grid) + tuple(launches()[-1].block), shapes[0])

    def test_a_thread_without_a_gpu(self):
        self.product(self.a, self.b, out=self.c)
        self.check(self.c)
        thread = threading.Thread(target=self.product, args=(self.a, self.b), kwargs={"out": self.c})
        thread.start()
        thread.join()
        self.check(self.c)

    def test_threads(self):
        wrong = []

        def work(i):
            for turn in range(200):
                m = 1 + (i + turn) % 7
                a, c = Tensor(numbers((m, K), turn)), Tensor(np.full((m, N), np.nan, np.float16))
                self.product(a, self.b, out=c)
                d = self.product(a, self.b)
                wrong.extend(x for x in (c, d) if not np.array_equal(x.x, product_of(a.x, self.b.x)))

        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        finally:
            sys.setswitchinterval(before)
        self.assertEqual(wrong, [])


class CallsThroughDLPack(Calls):
    """With tensors that the extension looks at in one step, as those of torch since 2.10."""

    def setUp(self):
        Tensor.__dlpack_c_exchange_api__ = capsule
        self.addCleanup(delattr, Tensor, "__dlpack_c_exchange_api__")
        super().setUp()

    @unittest.skipUnless(HAS_EXTENSION, "needs the extension")
    def test_asks_no_more_than_it_must(self):
        self.product(self.a, self.b, out=self.c)
        wrong = property(lambda tensor: self.fail("it is asked for an attribute"))
        with quick(), unittest.mock.patch.multiple(Tensor, is_contiguous=wrong, get_device=wrong, shape=wrong,
                                                   dtype=wrong):
            self.product(self.a, self.b, out=self.c)
        self.check(self.c)

    def test_extents_of_one_and_none(self):
        a, b = numbers((5, K)), numbers((K, N), 1)
        for x, y in (a[:1], b), (a[:, :1].copy(), b[:1]), (a[:1, :1], b[:1]), (a[:0], b):
            strides = [14 if n == 1 else s for n, s in zip(x.shape, x.strides)]  # which do not count
            x = np.lib.stride_tricks.as_strided(x, x.shape, strides)
            for _ in range(2):
                np.testing.assert_array_equal(self.product(Tensor(x), Tensor(y)).x, product_of(x, y))

    def test_other_versions_are_not_used(self):
        exchange.major, before = 2, len(exchanged)
        self.addCleanup(setattr, exchange, "major", 1)
        self.product(self.a, self.b, out=self.c)
        with quick():
            self.product(self.a, self.b, out=self.c)
        self.check(self.c)
        self.assertEqual(len(exchanged), before)


@unittest.skipUnless(HAS_EXTENSION, "needs the extension")
class Extension(Products):
    """What the extension alone has."""

    def setUp(self):
        super().setUp()
        self.product(self.a, self.b)
        fake.reset(0)

    def test_nothing_is_lost(self):
        def calls(n):
            refused = Tensor(self.b.x, requires_grad=True)
            for _ in range(n):
                self.product(self.a, self.b, out=self.c)
                self.product(self.a, self.b, out=(self.c,), stream=0x80)
                self.product(self.a, self.b)
                self.product._quick.seconds((self.a, self.b), self.c, None, 2)
                self.assertIs(self.product._quick((self.a, refused), self.c, None), NotImplemented)
                self.assertIs(self.product._quick((self.a, None), self.c, None), NotImplemented)
                fake.make_fail(b"cuLaunchKernel", 700)
                with self.assertRaises(tcc.LibraryError):
                    self.product(self.a, self.b)
                fake.reset(0)

        held = self.a, self.b, self.c, torch.float16
        calls(20)
        tracemalloc.start()
        counts, grown = [sys.getrefcount(x) for x in held], []
        for _ in range(3):
            before = tracemalloc.get_traced_memory()[0]
            calls(1000)
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] - before)
        tracemalloc.stop()
        self.assertEqual([sys.getrefcount(x) for x in held], counts)
        self.assertLess(min(grown), 1000 * 16)  # less than an object of each call

    def test_a_launcher_goes_with_its_kernel(self):
        kept = sys.getrefcount(Tensor)
        for _ in range(50):
            product = tcc.jit(PRODUCT, tiles=1)
            product(self.a, self.b, out=self.c)
        counted = sys.getrefcount(torch.float16)
        del product
        gc.collect()
        self.assertLess(sys.getrefcount(torch.float16), counted)
        self.assertLessEqual(sys.getrefcount(Tensor), kept)

    def test_seconds(self):
        launcher, given = self.product._quick, ((self.a, self.b), self.c, None, 10)
        self.assertIs(launcher.seconds(*given), NotImplemented)
        self.product(self.a, self.b, out=self.c)
        self.assertGreater(launcher.seconds(*given), 0)
        self.assertEqual(len(launches()), 11)
        self.assertIs(launcher.seconds((self.a, self.b), None, None, 10), NotImplemented)

    def test_wrong_use_of_it(self):
        launcher = self.product._quick
        for call in (lambda: launcher(1, 2), lambda: launcher((), None, stream=None), lambda: type(launcher)(1),
                     lambda: launcher.learn((self.a, self.b), self.c, (1,)), lambda: launcher.learn(1, 2)):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaises(ValueError):
            type(launcher)(bytes(65 * 8), bytes(65), 1, Tensor, None, 0, 0, 0, 0)
        for arguments in (None, (), (self.a, self.b)), ((self.a,), self.b, "x"):
            self.assertIs(launcher(arguments[0], arguments[1], None), NotImplemented)


if __name__ == "__main__":
    unittest.main()
