"""A GPU of AMD's, on a stand-in for HIP: LD_LIBRARY_PATH names its folder.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import unittest

import numpy as np

import tcc

os.environ["TCC_CACHE_DIR"] = ""  # nothing is kept


class HIP(unittest.TestCase):
    def test_arrays_of_the_host_go_there_and_back(self):
        product = tcc.jit("kernel fake_product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])"
                          " { C[m, n] = sum(k) A[m, k] * B[k, n]; }", tiles=1)
        self.assertEqual(product.target, "gfx1100")
        a, b = (np.random.default_rng(i).integers(-4, 5, (16, 16)).astype(np.float16) for i in (1, 2))
        np.testing.assert_array_equal(product(a, b), a.astype(np.float64) @ b.astype(np.float64))

    def test_kernels_for_extents(self):
        product = tcc.jit("kernel fake_product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])"
                          " { C[m, n] = sum(k) A[m, k] * B[k, n]; }", tiles=1, specialize="background", assemble="background")
        a, b = (np.random.default_rng(i).integers(-4, 5, (16, 512)).astype(np.float16) for i in (1, 2))
        for _ in range(2):
            np.testing.assert_array_equal(product(a, b.T.copy()), a.astype(np.float64) @ b.T.astype(np.float64))
            product.wait()
        counts = [tcc._lib.lib.tcc_jit_count(jit).specialized for jit in product._gpus._jits.values()]
        self.assertEqual(sum(counts), 1)


if __name__ == "__main__":
    unittest.main()
