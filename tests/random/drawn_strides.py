"""Random strides of tensors.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import numpy as np


def draw_strides(random, extents, repeats):
    """Elements from one index of each dimension to the next. repeats: elements may be in one place."""
    inward = list(reversed(range(len(extents))))
    kind = random.random()
    if kind < 0.3:
        inward[:2] = reversed(inward[:2])
    elif kind < 0.45:
        random.shuffle(inward)
    strides, reach = [0] * len(extents), 1
    for d in inward:
        stride = reach if d != inward[0] else random.choice([1, 1, 1, 1, 2, 3])
        if d != inward[0]:
            stride = random.choice([stride, (stride + 7) // 8 * 8, (stride + 15) // 16 * 16, stride + random.randint(1, 9)])
        if extents[d] < 2:
            stride = random.choice([stride, 0, 1, 99])
        elif repeats and random.random() < 0.15:
            stride = random.choice([0, 0, 1, 8, 16])
        strides[d] = stride
        reach += max(0, extents[d] - 1) * stride
    return strides


def as_in_memory(data, strides):
    """What an array holds once its elements are where strides say: several may be in one place."""
    places = sum((np.arange(n).reshape([-1 if e == d else 1 for e in range(data.ndim)]) * strides[d]
                  for d, n in enumerate(data.shape)), np.zeros(data.shape, np.int64))
    memory = np.zeros(places.max(initial=0) + 1, data.dtype)
    memory[places] = data
    return memory[places]
