"""Searches for schedules, on a stand-in for the CUDA driver: LD_LIBRARY_PATH names its folder.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes
import json
import math
import os
import pathlib
import pickle
import struct
import tempfile
import unittest
import unittest.mock

import numpy as np

import tcc
from test_gpu import K, M, N, PRODUCT, OnGPU, fake, numbers


def memory():
    """What is allocated and not freed; programs are kept."""
    counts = [tcc._lib.lib.tcc_jit_count(jit) for jit in tcc._gpu.gpus()._jits.values()]
    return fake.alive() - sum(n.compiled + n.read for n in counts)


class Tune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.product = tcc.jit(PRODUCT, target="sm_80", tiles=1)  # which has few schedules, that are soon judged
        cls.a, cls.b = numbers((M, K)), numbers((K, N), 1)
        cls.expected = cls.product(cls.a, cls.b)  # programs are loaded when they are launched

    def setUp(self):
        fake.reset(0)
        self.c = np.full((M, N), np.nan, np.float16)

    def tune(self, product, *arguments, results="", **how):
        """A search with two results at least, for which a busy machine takes longer."""
        for seconds in 1, 4, 16, 64:
            if results:
                results.unlink(missing_ok=True)
            try:
                tuned = product.tune(*arguments, results=results, seconds=seconds, **how)
            except tcc.Error as error:
                if "in time" not in str(error):
                    raise
            else:
                if tuned.progress.measured > 1:
                    return tuned
        self.fail("the machine is too busy")

    def test_tune(self):
        before, steps = self.a.copy(), []
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder, "tuned.jsonl")
            before_all = memory()
            tuned = self.tune(self.product, self.a, self.b, results=results, progress=steps.append)
            self.assertEqual(tuned.progress.measured, len(results.read_text().splitlines()))
            self.assertEqual((tuned.progress.wrong, tuned.progress.known), (0, 0))
            self.assertEqual(steps[-1].measured, tuned.progress.measured)
            self.assertGreater(steps[0].seconds_left, steps[-1].seconds_left)
            self.assertGreater(tuned.us, 0)
            self.assertAlmostEqual(tuned.ratio, tuned.before_us / tuned.us)
            self.assertTrue(tuned.schedule.startswith("schedule fake_product for sm_80\n{\n    tile "), tuned.schedule)
            self.assertIn(f"{tuned.us:.2f} us, and {tuned.before_us:.2f} us before", str(tuned))
            self.assertEqual(tuned.kernel.schedule.split(), tuned.schedule.split())
            np.testing.assert_array_equal(tuned.kernel(self.a, self.b), self.expected)
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(tuned.kernel))(self.a, self.b), self.expected)
            np.testing.assert_array_equal(self.a, before)

            again = self.product.tune(self.a, self.b, results=results, seconds=2)
            self.assertEqual(again.progress.known, tuned.progress.measured)
            self.assertEqual(memory(), before_all)

            lines = [json.loads(line) for line in results.read_text().splitlines()]
            best = min(lines, key=lambda line: line["time"])
            for line in lines:
                line["time"] = 0.5 if line is best else 1.5
            results.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
            found = self.product.tuned(self.a, self.b, results=results)
            self.assertEqual(found.schedule.split(), best["schedule"].split())
            np.testing.assert_array_equal(found(self.a, self.b), self.expected)
            self.assertIs(self.product.tuned(self.b.T.copy(), self.a.T.copy(), results=results), self.product)  # other extents
            results.write_text(results.read_text().replace(":0.5}", ":1.0}"))
            self.assertIs(self.product.tuned(self.a, self.b, results=results), self.product)  # which is not slower
            with self.assertRaisesRegex(tcc.LibraryError, "already has a schedule; tuning searches only for kernels without one"):
                found.tune(self.a, self.b, seconds=1, results="")

    def test_tune_arrays_of_the_gpu(self):
        before = memory()
        self.tune(self.product, OnGPU(self.a), B=OnGPU(self.b), out=OnGPU(self.c))
        self.assertTrue(np.isnan(self.c).all())
        self.assertEqual(memory(), before)

    def test_a_search_can_be_interrupted(self):
        def interrupt(progress):
            if progress.measured == 2:
                raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(KeyboardInterrupt):
                self.product.tune(self.a, self.b, seconds=60, results=pathlib.Path(folder, "tuned.jsonl"), progress=interrupt)
            times = [json.loads(line)["time"] for line in pathlib.Path(folder, "tuned.jsonl").read_text().splitlines()]
            self.assertEqual(len(times), 2)
            self.assertNotIn(None, times)  # wrong

    def test_what_fails_is_not_tried_again(self):
        def fail(progress):
            if progress.measured == 1:
                fake.make_fail(b"cuLaunchKernel", 700)

        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(tcc.LibraryError, "cuLaunchKernel: an illegal memory access"):
                self.product.tune(self.a, self.b, seconds=60, results=pathlib.Path(folder, "tuned.jsonl"), progress=fail)
            times = [json.loads(line)["time"] for line in pathlib.Path(folder, "tuned.jsonl").read_text().splitlines()]
            self.assertEqual(len(times), 2)
            self.assertIsNone(times[1])

    def test_schedules_that_compute_nothing_are_wrong(self):
        launch, handles, steps = tcc._lib.lib.tcc_kernel_launch, [], []

        def launch_the_first(*arguments):
            handles.append(arguments[0])
            return launch(*arguments) if len(handles) == 1 else 0

        def tell(progress):
            steps.append(progress)
            if progress.measured == 3:
                raise KeyboardInterrupt

        with unittest.mock.patch.object(tcc._lib.lib, "tcc_kernel_launch", launch_the_first):
            with self.assertRaises(KeyboardInterrupt):
                self.product.tune(self.a, self.b, seconds=60, results="", progress=tell)
        self.assertEqual((steps[-1].measured, steps[-1].wrong), (3, 3))
        with unittest.mock.patch.object(tcc._tune._Trial, "_time", lambda trial, handle: math.inf):
            with self.assertRaisesRegex(tcc.Error, "no schedule with correct results was measured in the given time"):
                self.product.tune(self.a, self.b, seconds=2, results="")

    def begun(self, product, *arguments):
        """What the last array has when kernels are launched to be compared."""
        launch, begun = tcc._lib.lib.tcc_kernel_launch, []

        def look(handle, extents, n_dims, packed, *others):
            begun.append(ctypes.string_at(struct.unpack("3Q", packed)[2], self.c.nbytes))
            return launch(handle, extents, n_dims, packed, *others)

        with unittest.mock.patch.object(tcc._lib.lib, "tcc_kernel_launch", look):
            self.tune(product, *arguments)
        self.assertGreater(len(begun), 2)
        return set(begun)

    def test_every_schedule_begins_with_what_was_given(self):
        update = tcc.jit("""
            kernel fake_product(A: f16[M, K], B: f16[K, N], inout C: f16[M, N])
            {
                acc[m, n] = sum(k) A[m, k] * B[k, n];
                C[m, n]   = C[m, n] + acc[m, n];
            }""", target="sm_80", tiles=1)
        given = numbers((M, N), 7)
        self.assertEqual(self.begun(update, self.a, self.b, given), {given.tobytes()})
        np.testing.assert_array_equal(given, numbers((M, N), 7))
        self.assertEqual(self.begun(self.product, self.a, self.b), {b"\xff" * self.c.nbytes})

    def test_tune_refuses(self):
        with self.assertRaisesRegex(tcc.ArgumentError, "nothing to compute with these arguments"):
            self.product.tune(self.a[:0], self.b, results="")
        with self.assertRaisesRegex(tcc.ArgumentError, "seconds= is 0, must be more than 0"):
            self.product.tune(self.a, self.b, seconds=0)
        with self.assertRaisesRegex(tcc.LibraryError, "/dev/null/x: Not a directory"):
            self.product.tune(self.a, self.b, results="/dev/null/x")
        interpreted = tcc.jit(PRODUCT, tiles=1, interpret=True)
        with self.assertRaisesRegex(tcc.Error, "tune needs a GPU that runs sm_90a, and the kernel was asked to be interpreted"):
            interpreted.tune(self.a, self.b)
        self.assertIs(interpreted.tuned(self.a, self.b), interpreted)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TCC_CACHE_DIR"] = folder
        unittest.main()
