"""tcc: matrix products, with everything fused into them, as functions of arrays.

>>> import numpy, tcc
>>> layer = tcc.jit('''
... kernel layer(A: f16[M, K], B: f16[K, N], bias: f32[N]) -> (C: f16[M, N])
... {
...     acc[m, n] = sum(k) A[m, k] * B[k, n];
...     C[m, n]   = relu(acc[m, n] + bias[n]);
... }
... ''')
>>> A, B = numpy.full((2, 8), 0.5, numpy.float16), numpy.ones((8, 3), numpy.float16)
>>> layer(A, B, numpy.array([0, 1, -9], numpy.float32))
array([[4., 5., 0.],
       [4., 5., 0.]], dtype=float16)

GPU arrays, such as torch's, are computed on their GPU; without a GPU the interpreter runs the same code on the CPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from ._bench import Bench, Timing
from ._errors import ArgumentError, CompileError, Diagnostic, Error, LibraryError
from ._kernel import Kernel, jit
from ._lib import lib as _library
from ._lib import targets
from ._signature import Argument
from ._timeline import Timeline
from ._tune import Tuned, TuneProgress

__version__: str = _library.tcc_version().decode()
__all__ = ["Argument", "ArgumentError", "Bench", "CompileError", "Diagnostic", "Error", "Kernel", "LibraryError",
           "Timeline", "Timing", "TuneProgress", "Tuned", "jit", "targets"]
