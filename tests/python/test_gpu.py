"""Arrays of a GPU, on a stand-in for the CUDA driver whose memory is the host's: LD_LIBRARY_PATH names its folder.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes
import os
import pathlib
import tempfile
import unittest

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
        with self.assertRaisesRegex(tcc.ArgumentError, "stream= is of str, wants a number"):
            self.product(a, b, out=c, stream="0")

    def test_prepare_launches_nothing(self):
        self.product.prepare(OnGPU(self.a), OnGPU(self.b), out=OnGPU(self.c))
        self.assertEqual(len(launches()), 0)

    def test_refusals(self):
        a, b, c = OnGPU(self.a), OnGPU(self.b), OnGPU(self.c)
        for arguments, out, message in (
                ((a, self.b), c, "fake_product: 'A' on GPU 0, and 'B' on the host: all are to be in one place"),
                ((a, b), None, "an array for the result cannot be made by the library of the arguments: pass out="),
                ((OnGPU(self.a.T), b), c, f"fake_product: 'A' is not contiguous: its shape is ({K}, {M}), its "
                 f"strides (1, {K}); pass a row-major copy")):
            with self.assertRaises(tcc.ArgumentError) as caught:
                self.product(*arguments, out=out)
            self.assertEqual(str(caught.exception), message)
        self.c.flags.writeable = False
        with self.assertRaisesRegex(tcc.ArgumentError, "'C' is written, and the array is read-only"):
            self.product(a, b, out=OnGPU(self.c))
        fake.make_fail(b"cuLaunchKernel", 700)
        with self.assertRaisesRegex(tcc.LibraryError, "cuLaunchKernel: an illegal memory access"):
            self.product(a, b, out=c)

    def test_another_gpus_program_is_interpreted(self):
        amd = tcc.jit(PRODUCT, target="gfx1100", tiles=1)
        np.testing.assert_array_equal(amd(self.a, self.b), self.expected)
        interpreted = tcc.jit(PRODUCT, tiles=1, interpret=True)
        np.testing.assert_array_equal(interpreted(self.a, self.b), self.expected)
        self.assertEqual(len(launches()), 0)
        with self.assertRaisesRegex(tcc.ArgumentError, "is not for GPU 0: it is interpreted, for gfx1100"):
            amd(OnGPU(self.a), OnGPU(self.b), out=OnGPU(self.c))

    def test_compiled_code_is_kept(self):
        self.assertTrue(list(pathlib.Path(os.environ["TCC_CACHE_DIR"]).glob("*.tcc")))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TCC_CACHE_DIR"] = folder
        unittest.main()
