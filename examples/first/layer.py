import pathlib
import numpy as np
import tcc

layer = tcc.jit(pathlib.Path("examples/first/layer.tile"))
A = np.full((4, 64), 0.5, np.float16)
B = np.ones((64, 3), np.float16)
bias = np.array([0, 1, -99], np.float32)
print(layer(A, B, bias))
