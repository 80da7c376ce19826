"""Views of arrays, whose strides a kernel takes as they are.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import tempfile
import unittest

os.environ["TCC_CACHE_DIR"] = tempfile.mkdtemp()
import numpy as np

import tcc

M, K, N = 24, 40, 32
PRODUCT = "kernel product(A: f16[M, K] strided, B: f16[K, N] strided) -> (C: f16[M, N] strided) " \
          "{ C[m, n] = sum(k) A[m, k] * B[k, n]; }"


def numbers(shape, seed=1):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float16)


class Strided(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.product = tcc.jit(PRODUCT, target="sm_90a", interpret=True, tiles=1)

    def check(self, a, b, out=None):
        result = self.product(a, b) if out is None else self.product(a, b, out=out)
        np.testing.assert_array_equal(result, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))

    def test_views_are_taken_as_they_are(self):
        a, b = numbers((M, K)), numbers((K, N))
        wide, tall, many = numbers((M, 2 * K)), numbers((N, K + 8)), numbers((3, M, K))
        for view in a, wide[:, :K], wide[:, K:], wide[:, ::2], wide[::2, :K], many[1], numbers((K, M)).T:
            self.check(view, b)
        for view in tall.T[:K], tall[:, 3:K + 3].T, np.broadcast_to(numbers((N,)), (K, N)), np.broadcast_to(
                numbers((K, 1)), (K, N)), np.lib.stride_tricks.sliding_window_view(numbers(K + N - 1), N):
            self.check(a, view)

    def test_what_can_be_copied_16_bytes_at_a_time_is(self):
        a, b = numbers((M, K)), numbers((K, N))
        for a, b, variant in ((a, b, "product"), (numbers((M, 2 * K))[:, :K], b, "product"),
                              (a, numbers((N, K)).T, "product__t_B"), (numbers((K, M)).T, b, "product__t_A"),
                              (numbers((M, K + 8))[:, :K - 1], b[:-1], "product"),
                              (a, numbers((K, 2 * N))[:, ::2], "product__strided")):
            self.assertEqual(self.product.variant(a, b), variant)

    def test_only_elements_of_a_result_are_written(self):
        a, b = numbers((M, K)), numbers((K, N))
        for cut in (np.s_[:, :N], np.s_[:, N:2 * N], np.s_[:, ::2], np.s_[::2, 1:N + 1]):
            memory = np.full((2 * M, 2 * N), 7, np.float16)
            out = memory[cut][:M]
            self.check(a, b, out)
            out[...] = 7
            self.assertTrue((memory == 7).all())
        out = np.zeros((N, M), np.float16).T
        self.check(a, b, out)

    def test_a_result_does_not_overlap_itself(self):
        a, b = numbers((M, K)), numbers((K, N))
        out = np.lib.stride_tricks.as_strided(np.zeros(M * N, np.float16), (M, N), (2, 2))
        with self.assertRaisesRegex(tcc.Error, "stride 1 of 'C' is 1, and must be for its elements not to overlap at least 24"):
            self.product(a, b, out=out)

    def test_dimensions_of_one_element_have_any_stride(self):
        column = numbers((K, 8))[:, :1]
        self.check(numbers((M, K)), column)
        self.check(numbers((4, K))[1:2], numbers((K, N)))

    def test_vectors_and_scalars_beside_them(self):
        axpy = tcc.jit("kernel axpy(x: f32[N] strided, inout y: f32[N] strided, a: f32) { y[i] = y[i] + a * x[i]; }",
                       interpret=True)
        x, y = np.arange(30, dtype=np.float32), np.ones(60, np.float32)
        axpy(x[::3], y[5:45:4], 2.0)
        expected = np.ones(60, np.float32)
        expected[5:45:4] += 2 * x[::3]
        np.testing.assert_array_equal(y, expected)

    def test_halves_of_bytes(self):
        scale = tcc.jit("kernel scale(W: i4[N, K] strided) -> (Y: f32[N, K]) { Y[n, k] = f32(W[n, k]); }", interpret=True)
        packed = np.arange(6 * 16, dtype=np.uint8).reshape(6, 16)
        nibbles = np.stack([packed & 15, packed >> 4], -1).reshape(6, 32).astype(np.int8)
        expected = np.where(nibbles > 7, nibbles - 16, nibbles).astype(np.float32)
        np.testing.assert_array_equal(scale(packed[:, :8]), expected[:, :16])
        np.testing.assert_array_equal(scale(packed[::2]), expected[::2])
        with self.assertRaisesRegex(tcc.ArgumentError, "'W' is not contiguous"):
            scale(packed[:, ::2])

    def test_what_no_kernel_takes(self):
        a, b = numbers((M, K)), numbers((K, N))
        with self.assertRaisesRegex(tcc.ArgumentError, "'A' is not contiguous: its shape is .*pass a row-major copy$"):
            self.product(a[::-1], b)
        plain = tcc.jit(PRODUCT.replace(" strided", ""), interpret=True, tiles=1)
        with self.assertRaisesRegex(tcc.ArgumentError, "'B' is not contiguous: .*a row-major copy, or declare it strided$"):
            plain(a, numbers((N, K)).T)

    def test_strides_that_are_bound_must_be_those(self):
        bound = tcc.jit(PRODUCT, defines={"B_stride_0": 1}, target="sm_90a", interpret=True, tiles=1)
        a, b = numbers((M, K)), numbers((N, K)).T
        np.testing.assert_array_equal(bound(a, b), self.product(a, b))
        with self.assertRaisesRegex(tcc.ArgumentError, "stride 0 of 'B' is 32, and 1 in the kernel"):
            bound(a, np.ascontiguousarray(b))

    def test_the_signature_shows_it(self):
        self.assertEqual(str(self.product), "product(A: f16[M, K] strided, B: f16[K, N] strided) -> (C: f16[M, N] strided)")
        self.assertEqual(self.product.args[0].strides, ("A_stride_0", "A_stride_1"))


if __name__ == "__main__":
    unittest.main()
