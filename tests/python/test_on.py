"""Where kernels run without a GPU, how that is said, and how calls that take long are ended.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import itertools
import os
import resource
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

import numpy as np

import tcc

PRODUCT = "kernel p(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }"
A = np.ones((8, 8), np.float16)




class On(unittest.TestCase):
    def test_one_warning_says_why_there_is_no_gpu(self):
        tcc._gpu._told.clear()
        p, q = tcc.jit(PRODUCT, tiles=1), tcc.jit(PRODUCT, tiles=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for kernel in p, q, p:
                kernel(A, A)
        self.assertEqual(len(caught), 1)
        self.assertIs(caught[0].category, RuntimeWarning)
        self.assertEqual(caught[0].filename, __file__)
        self.assertRegex(str(caught[0].message), r"^p is computed by the interpreter, which is slow: there is no GPU: "
                         r"libcuda\.so\.1: .*; .*HIP.*\. on=\"interp\" or TCC_ON=interp accepts that, on=\"gpu\" or TCC_ON=gpu "
                         r"makes it an error$")

    def test_nothing_is_said_where_it_was_asked_for(self):
        tcc._gpu._told.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tcc.jit(PRODUCT, tiles=1, on="interp")(A, A)
            tcc.jit(PRODUCT, tiles=1, interpret=True)(A, A)
            with unittest.mock.patch.dict(os.environ, TCC_ON="interp"):
                tcc.jit(PRODUCT, tiles=1)(A, A)
            tcc.jit(PRODUCT, tiles=1)  # and is not called
            tcc.jit(PRODUCT, tiles=1, target="sm_90a").timeline(A, A)  # which is the model's

    def test_gpu_insists(self):
        message = "must run on a GPU, as on= or TCC_ON says, and cannot: there is no GPU: libcuda"
        with self.assertRaisesRegex(tcc.Error, message):
            tcc.jit(PRODUCT, on="gpu")
        with unittest.mock.patch.dict(os.environ, TCC_ON="gpu"):
            with self.assertRaisesRegex(tcc.Error, message):
                tcc.jit(PRODUCT)
            tcc.jit(PRODUCT, on="interp", tiles=1)  # what the program says counts more
            pickle.loads(pickle.dumps(tcc.jit(PRODUCT, on="interp", tiles=1)))

    def test_other_words_are_refused(self):
        for on in "cpu", "", 1:
            with self.assertRaisesRegex(tcc.ArgumentError, f"on= is {on!r}, expected 'gpu' or 'interp'"):
                tcc.jit(PRODUCT, on=on)
        with self.assertRaisesRegex(tcc.ArgumentError, "interpret=True and on='gpu' contradict each other"):
            tcc.jit(PRODUCT, on="gpu", interpret=True)
        with unittest.mock.patch.dict(os.environ, TCC_ON="cuda"):
            with self.assertRaisesRegex(tcc.ArgumentError, "TCC_ON is 'cuda', expected gpu or interp"):
                tcc.jit(PRODUCT)

    def test_bench_says_why(self):
        with self.assertRaisesRegex(tcc.Error, "p: bench needs a GPU that runs sm_90a, and there is no GPU: libcuda"):
            tcc.jit(PRODUCT, target="sm_90a", tiles=1).bench(A, A)


def seconds_of(pid):
    """Of the processor, that a running process has taken."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def seconds_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Interrupts(unittest.TestCase):
    """Each call takes many seconds, and is interrupted soon after it began."""

    def setUp(self):  # Python begins without a handler where the signal is ignored, as in the background of a shell
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def assert_ends_soon(self, call, after):
        """At least once: a machine that does other things as well may not get to it at once."""
        waited = []
        while len(waited) < 10 and min(waited, default=1) >= 0.2:
            waited.append(self.interrupted(call, after))
        self.assertLess(min(waited), 0.2)

    def interrupted(self, call, after):
        """The seconds from the signal to the exception."""
        sent = []

        def send():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(after, send)
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            call()
            timer.cancel()  # else the signal would end the tests
            timer.join()
        ended = time.monotonic()
        timer.join()
        self.assertTrue(sent)
        return ended - sent[0]

    def test_the_interpreter_is_interrupted(self):
        big = np.ones((1024, 1024), np.float16)
        product = tcc.jit(PRODUCT, on="interp", tiles=1)
        product(A, A)
        self.assert_ends_soon(lambda: product(big, big), after=0.5)
        np.testing.assert_array_equal(product(A, A), np.full((8, 8), 8))
        for thread in tcc._signals._left:
            thread.join(5)
            self.assertFalse(thread.is_alive())

    def test_compiling_is_interrupted(self):
        terms = " + ".join(f"gelu(A[m, k] * {i})" for i in range(600))
        begins = itertools.count()  # each time another program: what was compiled is kept

        def call():
            tcc.jit(PRODUCT.replace("A[m, k] * B[k, n]", f"f16({terms} + {next(begins)}) * B[k, n]"), on="interp")

        self.assert_ends_soon(call, after=0.1)
        self.assertIs(type(tcc.jit(PRODUCT, on="interp", tiles=1)), tcc.Kernel)

    def test_a_script_ends(self):
        """After less than a second of the processor, however long it waits for one; the product takes many."""
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write("import numpy, signal, tcc\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nA = numpy.ones((2048, 2048), numpy.float16)\n"
                       f"p = tcc.jit('''{PRODUCT}''', on='interp', tiles=1)\nprint('begins', flush=True)\np(A, A)\n")
            file.flush()
            of_children = seconds_of_children()
            with subprocess.Popen([sys.executable, file.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
                running.stdout.readline()
                begun = seconds_of(running.pid)
                while (interrupted := seconds_of(running.pid)) < begun + 1:
                    time.sleep(0.02)
                running.send_signal(signal.SIGINT)
                _, errors = running.communicate()
        self.assertIn(b"\nKeyboardInterrupt", errors)
        self.assertEqual(running.returncode, -signal.SIGINT)
        self.assertLess(seconds_of_children() - of_children - interrupted, 1)  # with the end of Python itself

    def test_other_exceptions_of_handlers_are_raised(self):
        def handler(number, frame):
            raise TimeoutError

        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            big = np.ones((1024, 1024), np.float16)
            with self.assertRaises(TimeoutError):
                tcc.jit(PRODUCT, on="interp", tiles=1)(big, big)
        finally:
            signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    unittest.main()
