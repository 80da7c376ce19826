"""Views of arrays of other libraries: arrays of the right type are not copied.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import ctypes as c
import importlib
import math
import sys
from typing import Any, Callable, NamedTuple

from ._dlpack import GPU_DEVICES, HOST_DEVICES, DeviceArray, tensor_in
from ._elements import DLPACK, FORMATS, TYPESTR
from ._errors import ArgumentError

HOST = -1


class View(NamedTuple):
    """A view of an array."""

    address: int
    kind: tuple[Any, Any, Any]
    """Shape, element type and device, as objects of the array's library."""
    library: str
    """The array's library, which also makes the outputs; "" if unknown."""
    keep: Any
    """What keeps the memory alive."""
    strides: tuple[int, ...] | None = None
    """Elements from one index of each dimension to the next; None: it is row-major and contiguous."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.kind[0])

    @property
    def dtype(self) -> str:
        """The element type's name, such as "float16"."""
        return str(self.kind[1]).removeprefix("torch.")

    @property
    def ordinal(self) -> int:
        """The GPU's, or HOST."""
        device: int = self.kind[2]
        return device



class Unsuitable(Exception):
    """The reason why an array cannot be used; the caller adds its name."""


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int = 1) -> bool:
    """Whether an array is row-major; strides in units of which an element has ``size``. None: it is.

    >>> is_contiguous((2, 3), (3, 1)), is_contiguous((2, 3), (1, 2)), is_contiguous((1, 3), (99, 1))
    (True, False, True)
    >>> is_contiguous((4,), (2,), 2), is_contiguous((4,), (3,), 2)
    (True, False)
    """
    expected = size
    if strides is None or 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def why_not_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], unit: str = "") -> str:
    """What is wrong with an array where a contiguous one is expected."""
    return f"is not contiguous: its shape is {shape}, its strides {strides}{unit}; pass a row-major copy"


def _strides(shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int = 1) -> tuple[int, ...] | None:
    """Those of an array, in elements; None: it is contiguous.

    >>> _strides((2, 3), (12, 4), 4), _strides((2, 3), (4, 8), 4)
    (None, (1, 2))
    """
    if is_contiguous(shape, strides, size):
        return None
    assert strides
    if any(stride % size for stride in strides):
        raise Unsuitable(why_not_contiguous(shape, strides, " bytes"))
    return tuple(stride // size for stride in strides)


def span(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> int:
    """The number of elements from the first to the last.

    >>> span((2, 3), None), span((2, 3), (8, 1)), span((2, 0), (8, 1))
    (6, 11, 0)
    """
    if strides is None or 0 in shape:
        return math.prod(shape)
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides))


def places(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> tuple[int, ...]:
    """Strides as a kernel takes them. Those that do not matter are as in contiguous arrays.

    >>> places((2, 3), None), places((1, 3), (99, 2)), places((4, 1, 3), (8, 0, 1))
    ((3, 1), (6, 2), (8, 3, 1))
    """
    result: list[int] = []
    reach = 1
    for extent, stride in zip(reversed(shape), reversed(strides or [0] * len(shape))):
        result.append(stride if strides and extent > 1 else reach)
        reach = max(1, extent) * max(1, result[-1])
    return tuple(reversed(result))


def overlap(a: View, a_bytes: int, b: View, b_bytes: int) -> bool:
    """Whether two arrays share memory."""
    return a_bytes > 0 < b_bytes and a.address < b.address + b_bytes and b.address < a.address + a_bytes


# ---- one reader for each kind of array ---------------------------------------------------------


def _read_torch(x: Any) -> View:
    torch = sys.modules["torch"]
    if x.layout is not torch.strided or x.is_nested:
        raise Unsuitable(f"is not dense: {'it is nested' if x.is_nested else f'its layout is {x.layout}'}; pass a dense "
                         "copy, such as its to_dense() or to_padded_tensor()")
    if x.is_neg():
        raise Unsuitable("is negated lazily: its memory has the opposite numbers; pass its resolve_neg()")
    strides = None if x.is_contiguous() else _strides(tuple(x.shape), tuple(x.stride()))
    if x.requires_grad and torch.is_grad_enabled():
        raise Unsuitable("requires a gradient, which kernels do not have: pass it detached, or under torch.no_grad()")
    if not (x.is_cuda or x.is_cpu):
        raise Unsuitable(f"is on the device '{x.device}', which is neither the host nor a GPU of CUDA or HIP")
    address = x.data_ptr()
    if not address and x.numel():
        raise Unsuitable(f"is a {type(x).__name__} without memory of its own; pass a copy that has some, such as its clone()")
    return View(address, (x.shape, x.dtype, x.get_device() if x.is_cuda else HOST), "torch", x, strides)


def _read_numpy(x: Any) -> View:
    if not x.dtype.isnative:
        raise Unsuitable(f"is of the byte order of another machine: {x.dtype.str}")
    strides = None if x.flags.c_contiguous else _strides(x.shape, x.strides, x.itemsize)
    if is_masked(x):
        raise Unsuitable("has a mask, which kernels do not; pass its filled(…), or its data")
    return View(x.__array_interface__["data"][0], (x.shape, x.dtype.name, HOST), "numpy", x, strides)


def _read_cuda_array_interface(x: Any) -> View:
    i = x.__cuda_array_interface__
    shape = tuple(i["shape"])
    dtype = getattr(getattr(x, "dtype", None), "name", None) or TYPESTR.get(i["typestr"][1:], i["typestr"])
    if i["typestr"][0] == ">":
        raise Unsuitable(f"is of the byte order of another machine: {i['typestr']}")
    if i.get("mask") is not None:
        raise Unsuitable("has a mask, which kernels do not; pass an array without one")
    strides = _strides(shape, i.get("strides"), int(i["typestr"][2:]))
    device = x.__dlpack_device__()[1] if hasattr(x, "__dlpack_device__") else 0
    return View(i["data"][0] or 0, (shape, dtype, device), _library_of(x), x, strides)


def _read_dlpack(x: Any) -> View:
    try:
        capsule = x.__dlpack__()
    except Exception as error:  # of its library, of whatever kind
        raise Unsuitable(f"cannot be accessed through DLPack: {error}") from None
    t = tensor_in(capsule)
    if t.device_type not in HOST_DEVICES | GPU_DEVICES:
        raise Unsuitable(f"is on a device of DLPack's type {t.device_type}, which is neither the host nor a GPU of CUDA or HIP")
    shape = tuple(t.shape[: t.ndim])
    strides = _strides(shape, tuple(t.strides[: t.ndim]) if t.strides else None)
    dtype = DLPACK.get((t.code, t.bits)) if t.lanes == 1 else None
    device = HOST if t.device_type in HOST_DEVICES else t.device_id
    kind = shape, dtype or f"DLPack's type {t.code} of {t.bits} bits", device
    return View((t.data or 0) + t.byte_offset, kind, _library_of(x), (x, capsule), strides)


def _read_buffer(x: Any) -> View:
    m = memoryview(x)
    shape = tuple(m.shape or ())
    strides = None if m.c_contiguous else _strides(shape, m.strides, m.itemsize)
    if strides is not None:
        raise Unsuitable(why_not_contiguous(shape, strides))
    dtype = FORMATS.get(m.format.lstrip("@="), m.format)
    if not m.nbytes:
        return View(0, (shape, dtype, HOST), "", m)
    memory = c.create_string_buffer(m.tobytes(), m.nbytes) if m.readonly else c.c_char.from_buffer(m)
    return View(c.addressof(memory), (shape, dtype, HOST), "", (m, memory))


# ---- which reader ------------------------------------------------------------------------------

readers: dict[type, Callable[[Any], View]] = {
    DeviceArray: lambda x: View(x.address, (x.shape, x.dtype, x.device[1]), "", x)}
"""The reader for each type seen so far; may raise Unsuitable."""


def _library_of(x: Any) -> str:
    module = type(x).__module__.partition(".")[0]
    return "jax" if module in ("jax", "jaxlib") else "cupy" if module == "cupy" else ""


def _is_a(x: Any, module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(x, getattr(loaded, name))


def _choose_reader(x: Any) -> Callable[[Any], View]:
    if _is_a(x, "torch", "Tensor"):
        return _read_torch
    if _is_a(x, "numpy", "ndarray"):
        return _read_numpy
    if _library_of(x) != "jax" and hasattr(x, "__cuda_array_interface__"):
        return _read_cuda_array_interface
    if hasattr(x, "__dlpack__"):
        return _read_dlpack
    try:
        memoryview(x)
    except TypeError:
        raise Unsuitable(f"is not an array: {type(x).__name__} has neither __dlpack__ nor __cuda_array_interface__ "
                         "nor a buffer") from None
    return _read_buffer


def read(x: Any) -> View:
    """Returns a view of an array. Raises Unsuitable."""
    reader = readers.get(type(x))
    if reader is None:
        reader = readers[type(x)] = _choose_reader(x)
    return reader(x)


def is_writable(view: View) -> bool:
    """Whether a kernel may write to it."""
    if view.library == "numpy":
        return bool(view.keep.flags.writeable)
    if view.library in ("jax", "torch"):
        return view.library == "torch"
    if isinstance(view.keep, tuple):
        return not (isinstance(view.keep[0], memoryview) and view.keep[0].readonly)
    interface = getattr(view.keep, "__cuda_array_interface__", None)
    return interface is None or not interface["data"][1]


def is_masked(x: Any) -> bool:
    """Whether it is an array, or an element, of numpy's with a mask."""
    return _is_a(x, "numpy.ma", "MaskedArray") and x.mask is not sys.modules["numpy.ma"].nomask


def has_jax(values: list[Any]) -> bool:
    """Whether there is a view of a jax array."""
    return "jax" in sys.modules and any(isinstance(v, View) and v.library == "jax" for v in values)


# ---- new arrays --------------------------------------------------------------------------------


def numpy_dtype(name: str) -> Any:
    """The numpy dtype with this name, possibly from ml_dtypes."""
    import numpy

    if hasattr(numpy, name):
        return numpy.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise ArgumentError(f"numpy has no {name} without the package ml_dtypes: install it, or pass out=") from None
    return numpy.dtype(getattr(ml_dtypes, name))


def allocate(like: View, shape: tuple[int, ...], dtype: str) -> Any:
    """An uninitialised array of the same library on the same device."""
    if like.library == "torch":
        return like.keep.new_empty(shape, dtype=getattr(sys.modules["torch"], dtype))
    if like.library == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(like.ordinal):
            return cupy.empty(shape, numpy_dtype(dtype))
    if like.ordinal == HOST:
        import numpy

        return numpy.empty(shape, numpy_dtype(dtype))
    if like.library == "jax":
        device_type, ordinal = like.keep[0].__dlpack_device__()
        return DeviceArray(shape, dtype, (int(device_type), ordinal))
    raise ArgumentError("an array for the result cannot be made by the library of the arguments: pass out=")


def finish(library: str, array: Any) -> Any:
    """The caller's result for an array made by ``allocate``, from whose contents jax arrays are made."""
    if library != "jax":
        return array
    if isinstance(array, DeviceArray):
        return importlib.import_module("jax.dlpack").from_dlpack(array)
    return sys.modules["jax"].numpy.asarray(array)


def pack(view: View) -> View:
    """A packed copy of an array of ml_dtypes' int4 or uint4, which has a byte for each."""
    import numpy

    nibbles = view.keep.view(numpy.uint8).ravel() & 15
    nibbles = numpy.append(nibbles, numpy.zeros(nibbles.size % 2, numpy.uint8))
    packed = nibbles[::2] | nibbles[1::2] << 4
    return view._replace(address=packed.__array_interface__["data"][0], keep=packed, strides=None)
