"""Arrays of a GPU, on a stand-in for the CUDA driver whose memory is the host's: LD_LIBRARY_PATH names its folder.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import contextlib
import ctypes
import gc
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

import numpy as np

import tcc

# The stand-in computes kernels of this name.
PRODUCT = """
kernel fake_product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])
{
    C[m, n] = sum(k) A[m, k] * B[k, n];
}
"""
M, K, N = 6, 8, 16


class Launch(ctypes.Structure):
    _fields_ = [("entry", ctypes.c_char * 64), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("smem_bytes", ctypes.c_uint), ("stream", ctypes.c_void_p), ("max_smem_bytes", ctypes.c_int),
                ("params", ctypes.c_uint64 * 16)]


class Control(ctypes.Structure):
    _fields_ = [("reset", ctypes.CFUNCTYPE(None, ctypes.c_int)),
                ("launches", ctypes.CFUNCTYPE(ctypes.POINTER(Launch), ctypes.POINTER(ctypes.c_int))),
                ("make_fail", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int)),
                ("alive", ctypes.CFUNCTYPE(ctypes.c_int))]


fake = Control.in_dll(ctypes.CDLL("libcuda.so.1"), "fake_cuda")


class OnGPU:
    """An array of the GPU, as numba or cupy has it."""

    def __init__(self, x, stream=None):
        self.x = x
        self.__cuda_array_interface__ = {**x.__array_interface__, "version": 3, "stream": stream, "strides": x.strides}


class CupyArray(OnGPU):
    """An array of a stand-in for cupy."""

    __module__ = "cupy"

    def __init__(self, x):
        super().__init__(x)
        self.dtype = x.dtype

    def __dlpack_device__(self):
        return 2, 0


def fake_cupy(stream):
    """The part of cupy that the package calls."""
    cupy = types.ModuleType("cupy")
    cupy.ndarray = CupyArray
    cupy.empty = lambda shape, dtype: CupyArray(np.full(shape, np.nan, dtype))
    cupy.cuda = types.SimpleNamespace(Device=lambda ordinal: contextlib.nullcontext(),
                                      get_current_stream=lambda: types.SimpleNamespace(ptr=stream))
    return unittest.mock.patch.dict(sys.modules, cupy=cupy)


class ManagedTensor(ctypes.Structure):
    """DLPack's DLManagedTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int),
                ("ndim", ctypes.c_int), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class JaxArray:
    """An array of f16 as jax has it on a GPU."""

    __module__ = "jaxlib._jax"

    def __init__(self, x, device_type=2):
        self.x = x
        self._shape = (ctypes.c_int64 * x.ndim)(*x.shape)
        self._tensor = ManagedTensor(data=x.ctypes.data, device_type=device_type, ndim=x.ndim, code=2, bits=16, lanes=1,
                                     shape=self._shape)

    def __dlpack__(self, **named):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._tensor), b"dltensor", None)

    def __dlpack_device__(self):
        return 2, 0


class TakenArray:
    """What jax makes of a capsule: it is the one to delete what is in it."""

    def __init__(self, x):
        capsule = x.__dlpack__(stream=0x40)
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
        self.tensor = ManagedTensor.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor"))
        api.PyCapsule_SetName(capsule, USED)

    @property
    def numbers(self):
        t = self.tensor
        assert (t.device_type, t.device_id, t.code, t.bits, t.lanes) == (2, 0, 2, 16, 1)
        shape = tuple(t.shape[: t.ndim])
        memory = (ctypes.c_uint16 * int(np.prod(shape))).from_address(t.data)
        return np.frombuffer(memory, np.float16).reshape(shape).copy()

    def __del__(self):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.tensor.deleter)(ctypes.addressof(self.tensor))


USED = b"used_dltensor"  # outlives the capsules that have it as a name


def fake_jax(from_dlpack=TakenArray):
    """The part of jax that the package calls."""
    jax = types.ModuleType("jax")
    jax.dlpack = types.ModuleType("jax.dlpack")
    jax.dlpack.from_dlpack = from_dlpack
    return unittest.mock.patch.dict(sys.modules, {"jax": jax, "jax.dlpack": jax.dlpack})


def numbers(shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float16)


def launches():
    n = ctypes.c_int()
    found = fake.launches(n)
    return found[: n.value]


class Arrays(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.product = tcc.jit(PRODUCT, tiles=1)
        cls.a, cls.b = numbers((M, K)), numbers((K, N), 1)
        cls.expected = (cls.a.astype(np.float64) @ cls.b.astype(np.float64)).astype(np.float16)
        cls.product(cls.a, cls.b)  # from here on a GPU is current

    def setUp(self):
        fake.reset(0)
        self.c = np.full((M, N), np.nan, np.float16)

    def test_is_for_the_gpu(self):
        self.assertEqual(self.product.target, "sm_90a")
        self.assertEqual(tcc.jit(PRODUCT, target="sm_80", tiles=1).target, "sm_80")
        self.assertEqual(tcc.jit(PRODUCT, tiles=1, on="gpu").target, "sm_90a")
        for on in None, "gpu", "interp":
            native = tcc.jit(PRODUCT, tiles=1, target="native", on=on)
            self.assertEqual(native.target, "sm_90a")
            np.testing.assert_array_equal(native(self.a, self.b), self.expected)

    def test_arrays_of_the_host_go_there_and_back(self):
        alive = fake.alive()
        np.testing.assert_array_equal(self.product(self.a, self.b), self.expected)
        self.assertEqual(len(launches()), 1)
        self.assertEqual(fake.alive(), alive)
        fake.make_fail(b"cuMemcpyDtoH_v2", 2)
        with self.assertRaisesRegex(tcc.LibraryError, "cuMemcpyDtoH"):
            self.product(self.a, self.b)
        self.assertEqual(fake.alive(), alive)

    def test_arrays_of_the_gpu_stay_there(self):
        out = OnGPU(self.c)
        self.assertIs(self.product(OnGPU(self.a), OnGPU(self.b), out=out), out)
        np.testing.assert_array_equal(self.c, self.expected)
        self.assertEqual([x.stream for x in launches()], [None])

    def test_a_launch_is_on_the_stream(self):
        a, b, c = OnGPU(self.a, stream=0x40), OnGPU(self.b), OnGPU(self.c)
        self.product(a, b, out=c)
        self.product(a, b, out=c, stream=0x80)

        class Stream:
            ptr = 0xC0

        self.product(a, b, out=c, stream=Stream())
        self.assertEqual([x.stream for x in launches()], [0x40, 0x80, 0xC0])
        with self.assertRaisesRegex(tcc.ArgumentError, "stream= is of type str, expected a number"):
            self.product(a, b, out=c, stream="0")

    def test_what_the_interface_says_beyond_an_address(self):
        a, b, c = OnGPU(self.a), OnGPU(self.b), OnGPU(self.c)
        for key, value, message in (("mask", OnGPU(self.a > 0), "has a mask, which kernels do not"),
                                    ("typestr", ">f2", "is of the byte order of another machine: >f2"),
                                    ("strides", (24, 3), "is not contiguous: .* its strides \\(24, 3\\) bytes")):
            a = OnGPU(self.a)
            a.__cuda_array_interface__[key] = value
            with self.assertRaisesRegex(tcc.ArgumentError, f"fake_product: 'A' {message}"):
                self.product(a, b, out=c)
        self.assertEqual(len(launches()), 0)

    def test_prepare_launches_nothing(self):
        self.product.prepare(OnGPU(self.a), OnGPU(self.b), out=OnGPU(self.c))
        self.assertEqual(len(launches()), 0)

    def test_refusals(self):
        a, b, c = OnGPU(self.a), OnGPU(self.b), OnGPU(self.c)
        for arguments, out, message in (
                ((a, self.b), c, "fake_product: 'A' on GPU 0, but 'B' on the host: all arrays must be in one place"),
                ((a, b), None, "an array for the result cannot be made by the library of the arguments: pass out="),
                ((OnGPU(self.a.T), b), c, f"fake_product: 'A' is not contiguous: its shape is ({K}, {M}), its "
                 f"strides (1, {K}); pass a row-major copy, or declare it strided")):
            with self.assertRaises(tcc.ArgumentError) as caught:
                self.product(*arguments, out=out)
            self.assertEqual(str(caught.exception), message)
        self.c.flags.writeable = False
        with self.assertRaisesRegex(tcc.ArgumentError, "'C' is written, and the array is read-only"):
            self.product(a, b, out=OnGPU(self.c))
        fake.make_fail(b"cuLaunchKernel", 700)
        with self.assertRaisesRegex(tcc.LibraryError, "cuLaunchKernel: an illegal memory access"):
            self.product(a, b, out=c)

    def test_cupy(self):
        a, b = CupyArray(self.a), CupyArray(self.b)
        with fake_cupy(stream=0x40):
            c = self.product(a, b)
            self.assertIs(type(c), CupyArray)
            np.testing.assert_array_equal(c.x, self.expected)
            self.product(a, b, out=OnGPU(self.c), stream=types.SimpleNamespace(ptr=0x80))
        np.testing.assert_array_equal(self.c, self.expected)
        self.assertEqual([x.stream for x in launches()], [0x40, 0x80])

    def test_jax_on_a_gpu(self):
        a, b = JaxArray(self.a), JaxArray(self.b)
        self.product(a, b, out=OnGPU(self.c))
        np.testing.assert_array_equal(self.c, self.expected)
        with self.assertRaisesRegex(tcc.ArgumentError, "'C' is written, and the array is read-only"):
            self.product(a, b, out=JaxArray(self.c))
        with self.assertRaisesRegex(tcc.ArgumentError, "'A' is on a device of DLPack's type 7, which is neither"):
            self.product(JaxArray(self.a, device_type=7), b)

    def test_outputs_of_jax(self):
        a, b, alive = JaxArray(self.a), JaxArray(self.b), fake.alive()
        with fake_jax():
            c, d = self.product(a, b), self.product(a, b)
            self.assertEqual(fake.alive(), alive + 2)
            np.testing.assert_array_equal(c.numbers, self.expected)
            del c
            self.assertEqual(fake.alive(), alive + 1)
            thread = threading.Thread(target=[d].clear)  # whatever thread drops it, with no GPU of its own
            del d
            thread.start()
            thread.join()
            self.assertEqual(fake.alive(), alive)

    def test_outputs_of_jax_that_nobody_takes(self):
        a, b, alive = JaxArray(self.a), JaxArray(self.b), fake.alive()

        def refuse(x):
            x.__dlpack__(stream=None, max_version=(1, 1))  # the capsule goes as it is
            raise TypeError("no such arrays")

        with fake_jax(refuse), self.assertRaisesRegex(TypeError, "no such arrays"):
            self.product(a, b)
        self.assertEqual(fake.alive(), alive)
        with fake_jax():
            fake.make_fail(b"cuLaunchKernel", 700)
            with self.assertRaisesRegex(tcc.LibraryError, "cuLaunchKernel"):
                self.product(a, b)
            fake.make_fail(b"cuMemAlloc_v2", 2)
            with self.assertRaisesRegex(tcc.LibraryError, "cuMemAlloc"):
                self.product(a, b)
        self.assertEqual(fake.alive(), alive)

    def test_a_call_with_arrays_of_jax_waits(self):
        on_gpu, of_jax, c = OnGPU(self.a), JaxArray(self.a), OnGPU(self.c)
        with fake_jax():
            fake.make_fail(b"cuCtxSynchronize", 700)
            self.product(on_gpu, OnGPU(self.b), out=c)
            for arguments in ((of_jax, OnGPU(self.b)), (on_gpu, JaxArray(self.b))):
                with self.assertRaisesRegex(tcc.LibraryError, "cuCtxSynchronize"):
                    self.product(*arguments, out=c)

    def test_outputs_of_real_jax(self):
        try:
            import jax
            import jax.dlpack
        except ImportError:
            self.skipTest("needs jax")
        alive = fake.alive()
        for dtype in "float16", "bfloat16", "float32", "int8", "uint8", "int32":
            new = tcc._dlpack.DeviceArray((3, 16), dtype, (1, 0))  # the stand-in's memory is the host's
            ctypes.memset(new.address, 1, 3 * 16 * 4 if dtype.endswith("32") else 3 * 16)
            address, x = new.address, jax.dlpack.from_dlpack(new)
            del new
            self.assertEqual((x.shape, x.dtype.name, x.unsafe_buffer_pointer()), ((3, 16), dtype, address))
            self.assertEqual(fake.alive(), alive + 1)
            np.testing.assert_array_equal(np.asarray(x + x)[0, 0], np.asarray(x)[0, 0] * 2)
            del x
            gc.collect()
            self.assertEqual(fake.alive(), alive)
        with self.assertRaisesRegex(tcc.ArgumentError, "DLPack has no int4: pass out="):
            tcc._dlpack.DeviceArray((3, 16), "int4", (1, 0))

    def test_bench(self):
        before, calls = self.a.copy(), []
        other = tcc.jit(PRODUCT, tiles=2)
        other(self.a, self.b)
        alive = fake.alive()
        bench = self.product.bench(self.a, self.b, against={"other": other, "call": lambda: calls.append(1)})
        self.assertEqual(fake.alive(), alive)
        self.assertEqual([t.name for t in bench.timings], ["fake_product", "other", "call"])
        self.assertEqual(bench.device, "fake GPU 0")
        self.assertGreater(bench.us, 0)
        self.assertEqual(bench.us, sorted(bench.timings[0].rounds)[5])
        self.assertAlmostEqual(bench.tflops, 2 * M * K * N / bench.us * 1e-6)
        self.assertAlmostEqual(bench.timings[0].gbytes, 2 * (M * K + K * N + M * N) / bench.us * 1e-3)
        self.assertAlmostEqual(bench.ratio("call"), bench.timings[2].us / bench.us)
        self.assertRegex(str(bench), r"^fake_product +[0-9.]+ us .* on fake GPU 0\nother .* ratio [0-9.]+\ncall ")
        with self.assertRaises(KeyError):
            bench.ratio("none")
        self.assertGreater(len(calls), 100)
        np.testing.assert_array_equal(self.a, before)

    def test_bench_leaves_arrays_as_they_are(self):
        alive = fake.alive()
        bench = self.product.bench(OnGPU(self.a), OnGPU(self.b), out=OnGPU(self.c), against=self.product)
        self.assertEqual([t.name for t in bench.timings], ["fake_product"] * 2)
        self.assertGreater(bench.ratio("fake_product"), 0)
        self.assertEqual(fake.alive(), alive)
        self.assertTrue(np.isnan(self.c).all())

    def test_bench_refuses(self):
        scale = tcc.jit("kernel scale(A: f16[M, N]) -> (B: f16[M, N]) { B[m, n] = A[m, n]; }")
        with self.assertRaisesRegex(tcc.ArgumentError, "'scale' must be a kernel with the same arguments"):
            self.product.bench(self.a, self.b, against=scale)
        with self.assertRaisesRegex(tcc.ArgumentError, "'other' must be"):
            self.product.bench(self.a, self.b, against=3)
        with self.assertRaisesRegex(ZeroDivisionError, "division by zero"):
            self.product.bench(self.a, self.b, against=lambda: 1 / 0)
        interpreted = tcc.jit(PRODUCT, tiles=1, interpret=True)
        with self.assertRaisesRegex(tcc.Error, "bench needs a GPU that runs sm_90a, and the kernel was asked to be interpreted"):
            interpreted.bench(self.a, self.b)
        fake.make_fail(b"cuLaunchKernel", 700)
        with self.assertRaisesRegex(tcc.LibraryError, "cuLaunchKernel: an illegal memory access"):
            self.product.bench(self.a, self.b)

    def test_timelines(self):
        self.assertRegex(self.product.timeline(self.a, self.b).summary, "^CTA 0: [0-9]+ cycles, ")
        on_gpu = OnGPU(self.a), OnGPU(self.b)
        before = len(launches())
        with self.assertRaisesRegex(tcc.Error, "the launch had no CTA of the number that is recorded"):  # nor any other
            self.product.timeline(*on_gpu, out=OnGPU(self.c))
        self.assertGreater(len(launches()), before)
        with self.assertRaisesRegex(tcc.Error, "no CTA has number -1"):
            self.product.timeline(*on_gpu, out=OnGPU(self.c), cta=-1)

    def test_kernels_for_extents(self):
        a, b = np.ones((16, 64), np.float16), np.ones((64, 24), np.float16)
        shape = lambda: (tuple(launches()[-1].grid), tuple(launches()[-1].block))  # noqa: E731
        for when in "at once", "background":
            product, general = (tcc.jit(PRODUCT + f"// {when}", tiles=1, specialize=s) for s in (when, "never"))
            shapes = []
            for _ in range(2):
                np.testing.assert_array_equal(product(a, b), np.full((16, 24), 64, np.float16))
                shapes.append(shape())
                product.wait()
            general(a, b)
            self.assertEqual(shapes[0] == shape(), when == "background")
            self.assertNotEqual(shapes[1], shape())
        with self.assertRaisesRegex(tcc.ArgumentError, "'now' is none of 'never', 'at once', 'background'"):
            tcc.jit(PRODUCT, specialize="now")

    def test_machine_code_is_made_in_the_background(self):
        product = tcc.jit(PRODUCT + "// assembled", tiles=1, assemble="background")
        product.wait()
        np.testing.assert_array_equal(product(self.a, self.b), self.expected)
        entries = pathlib.Path(os.environ["TCC_CACHE_DIR"]).glob("*.tcc")
        kept, = (e for e in (p.read_bytes() for p in entries) if b"// assembled" in e)
        folders = [os.environ.get("CUDA_HOME", "/none") + "/bin", os.environ["PATH"], "/usr/local/cuda/bin"]
        self.assertEqual(b"tccbndl" in kept, shutil.which("ptxas", path=os.pathsep.join(folders)) is not None)

    def test_another_gpus_program_is_interpreted(self):
        amd = tcc.jit(PRODUCT, target="gfx1100", tiles=1)
        np.testing.assert_array_equal(amd(self.a, self.b), self.expected)
        interpreted = tcc.jit(PRODUCT, tiles=1, interpret=True)
        np.testing.assert_array_equal(interpreted(self.a, self.b), self.expected)
        self.assertEqual(len(launches()), 0)
        with self.assertRaisesRegex(tcc.Error, "fake_product must run on a GPU.* GPU 0, sm_90a, does not run gfx1100"):
            tcc.jit(PRODUCT, kernel="fake_product", target="gfx1100", tiles=1, on="gpu")
        tcc._gpu._told.clear()
        with self.assertWarnsRegex(RuntimeWarning, "interpreter, which is slow: GPU 0, sm_90a, does not run gfx1100"):
            amd(self.a, self.b)
        with self.assertRaisesRegex(tcc.ArgumentError, "is not for GPU 0: it is interpreted, for gfx1100"):
            amd(OnGPU(self.a), OnGPU(self.b), out=OnGPU(self.c))

    def test_compiled_code_is_kept(self):
        self.assertTrue(list(pathlib.Path(os.environ["TCC_CACHE_DIR"]).glob("*.tcc")))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TCC_CACHE_DIR"] = folder
        unittest.main()
