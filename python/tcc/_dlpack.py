"""DLPack: tensors in capsules, from other libraries and for them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import ctypes as c
import math
from typing import Any

from ._elements import DLPACK
from ._errors import ArgumentError
from ._gpu import gpus

HOST_DEVICES = {1, 3, 11}  # kDLCPU, kDLCUDAHost, kDLROCMHost
GPU_DEVICES = {2, 10, 13}  # kDLCUDA, kDLROCM, kDLCUDAManaged

_CODES = {name: code for code, name in DLPACK.items()}
_NAME = b"dltensor"  # of a capsule whose tensor has not been taken over


class Tensor(c.Structure):
    """DLTensor."""

    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int), ("device_id", c.c_int), ("ndim", c.c_int),
                ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class _Managed(c.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", Tensor), ("manager", c.c_void_p), ("deleter", c.c_void_p)]


# Capsules are passed by address: one that is being destroyed must not become an object again.
_new = c.PYFUNCTYPE(c.py_object, c.c_void_p, c.c_char_p, c.c_void_p)(("PyCapsule_New", c.pythonapi))
_pointer_in = c.PYFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(("PyCapsule_GetPointer", c.pythonapi))
_is_valid = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p)(("PyCapsule_IsValid", c.pythonapi))


def tensor_in(capsule: Any) -> Tensor:
    """The tensor in a capsule, valid as long as the capsule."""
    return Tensor.from_address(_pointer_in(id(capsule), _NAME))


# ---- new tensors -------------------------------------------------------------------------------

_lent: dict[int, Any] = {}
"""Objects that other libraries still use, by the address of their _Managed."""


def _delete(managed: int, lent: dict[int, Any] = _lent) -> None:
    """Called by the library that took a tensor over, in any thread."""
    lent.pop(managed, None)


def _destroy(capsule: int, is_valid: Any = _is_valid, pointer_in: Any = _pointer_in, name: bytes = _NAME,
             lent: dict[int, Any] = _lent) -> None:
    """Called when a capsule is destroyed: frees its tensor unless it has been taken over."""
    if is_valid(capsule, name):
        lent.pop(pointer_in(capsule, name), None)


_CALLBACK = c.CFUNCTYPE(None, c.c_void_p)
_callbacks = _CALLBACK(_delete), _CALLBACK(_destroy)
c.pythonapi.Py_IncRef(c.py_object(_callbacks))  # arrays may outlive this module when Python ends
_deleter, _destructor = (c.cast(callback, c.c_void_p).value for callback in _callbacks)


class DeviceArray:
    """New row-major GPU memory for a library that takes it over through ``__dlpack__``; freed after its last use."""

    def __init__(self, shape: tuple[int, ...], dtype: str, device: tuple[int, int]):
        """device: DLPack's type, and the GPU's ordinal"""
        self.address = 0
        if dtype not in _CODES:
            raise ArgumentError(f"DLPack has no {dtype}: pass out=")
        self.shape, self.dtype, self.device = shape, dtype, device
        self._gpus = gpus()
        assert self._gpus
        self.address = self._gpus.allocate(device[1], math.prod(shape) * _CODES[dtype][1] // 8)

    def __del__(self) -> None:
        if self.address and self._gpus:
            self._gpus.free(self.device[1], self.address)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **how: Any) -> Any:
        """For any stream: the contents are complete before another library receives the array."""
        shape = (c.c_int64 * len(self.shape))(*self.shape)
        code, bits = _CODES[self.dtype]
        managed = _Managed(Tensor(self.address, *self.device, len(self.shape), code, bits, 1, shape), None, _deleter)
        _lent[c.addressof(managed)] = managed, shape, self
        return _new(c.addressof(managed), _NAME, _destructor)
