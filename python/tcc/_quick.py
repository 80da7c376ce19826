"""The quick path: calls with torch's tensors on a GPU, the likes of which were checked before. An extension has it.

Where that was not built, or this interpreter does not load it, every call takes the path that is written in Python.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import ctypes as c
import os
import struct
import sys
from typing import TYPE_CHECKING, Any, Tuple

from . import _lib
from ._elements import ELEMENTS
from ._gpu import Gpus, current_stream_of_torch
from ._lib import lib
from ._signature import Plan, Signature

if TYPE_CHECKING:
    from ._launcher import Launcher, Launches
_path = sys.modules[__package__].__path__
_beside = os.path.dirname(os.environ.get("TCC_LIBRARY", ""))  # in a source tree it lies beside the library
_path.extend([_beside] if _beside else [])
try:
    from . import _launcher
except ImportError:
    _launcher = None  # type: ignore[assignment]
finally:
    if _beside:
        _path.remove(_beside)

Request = Tuple[c.c_void_p, bytes, _lib.CompileOptions, bytes]
"""What tcc_jit_kernel_for takes first: the compiler, a source, its options, the kernel's name."""


def _address(x: Any) -> int:
    """Where something lies that C takes a pointer to."""
    return c.cast(x, c.c_void_p).value or 0


_CALLED = _address(lib.tcc_runtime_current_device), _address(lib.tcc_jit_kernel_for), _address(lib.tcc_kernel_launch)


def launcher(signature: Signature, gpus: Gpus) -> Launcher | None:
    """What launches a kernel with tensors of torch, which is loaded, as soon as it was taught; None: no quick path."""
    if _launcher is None:
        return None
    limits = [ELEMENTS[a.type].overflow if a.role == "scalar" else 0 for a in signature.args]
    is_written = bytes(i in signature.written for i in range(len(signature.args)))
    return _launcher.Launcher(struct.pack(f"{len(limits)}d", *limits), is_written, len(signature.inputs),
                              sys.modules["torch"].Tensor, gpus.listener.check, _address(gpus.runtime), *_CALLED)


def launches(plan: Plan, kinds: list[tuple[Any, Any, Any]], kernel: c.c_void_p | Request) -> Launches:
    """What a launcher does for calls with this plan, of tensors.

    kinds   of the call's tensors
    kernel  the kernel on the plan's GPU, or how it is asked for at every call
    """
    torch = sys.modules["torch"]
    request: tuple[int, ...] = ()
    if isinstance(kernel, tuple):
        jit, source, options, name = kernel
        request = _address(jit), _address(source), c.addressof(options), _address(name)
    outputs = tuple(((shape,), {"dtype": getattr(torch, dtype)}) for shape, dtype in plan.outputs)
    sizes = struct.pack(f"{len(plan.sizes)}q", *plan.sizes)
    return (plan.ordinal, plan.extents, sizes, outputs, current_stream_of_torch(), torch.is_grad_enabled,
            0 if request else _address(kernel), request, (kinds, kernel))
