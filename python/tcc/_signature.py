"""Signatures of kernels, and the checked arguments of calls.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import ctypes as c
import math
import struct
from typing import Any, Mapping, NamedTuple

from . import _arrays
from ._arrays import HOST, Unsuitable, View
from ._elements import ELEMENTS, PACKED, Element
from ._errors import ArgumentError
from ._extents import extent_of, names_in
from ._lib import IN, INOUT, OUT, SCALAR, lib, text_of

WRITTEN = ("out", "inout")
_ROLES = {IN: "in", OUT: "out", INOUT: "inout", SCALAR: "scalar"}


class Argument(NamedTuple):
    """A parameter or an output of a kernel."""

    name: str
    type: str
    """The element type: "f16", …"""
    role: str
    """"in", "out", "inout" or "scalar"."""
    shape: tuple[str | int, ...]
    """For each dimension its name, as "M", or how it is computed, as "2 * M"; or its extent."""
    strides: tuple[str | int, ...] | None = None
    """Of a ``strided`` tensor for each dimension the name of its stride, or the stride; else None."""

    def __str__(self) -> str:
        shape = f"[{', '.join(map(str, self.shape))}]" if self.shape else ""
        return f"{self.name}: {self.type}{shape}{' strided' if self.strides else ''}"


def _argument(kernel: c.c_void_p, i: int) -> Argument:
    info = lib.tcc_kernel_arg(kernel, i).contents

    def names(dims: Any, numbers: Any) -> tuple[str | int, ...]:
        return tuple(text_of(dims[d]) if dims[d] else numbers[d] for d in range(info.rank))

    return Argument(text_of(info.name), text_of(info.type), _ROLES[info.role], names(info.dims, info.extents),
                    names(info.stride_dims, info.strides) if info.stride_dims else None)


class Plan(NamedTuple):
    """What calls with arrays of the same shapes, types and devices share."""

    extents: bytes  # of the kernel's dims, as C takes them
    outputs: tuple[tuple[tuple[int, ...], str], ...]  # shapes and types
    packs: tuple[int, ...]  # arguments that are packed first
    sizes: tuple[int, ...]  # bytes of each argument that is given; 0: a scalar
    ordinal: int  # HOST, or the GPU's

    @property
    def n_extents(self) -> int:
        return len(self.extents) // 8


def bytes_of(argument: Argument, view: View) -> int:
    """The size of an array as a kernel argument."""
    n = _arrays.span(view.shape, view.strides)
    bits = ELEMENTS[argument.type].bits
    return n if view.dtype == PACKED else (n * bits + 7) // 8


_MAX_PLANS = 4096  # of a kernel, before all are forgotten


def _number(x: Any, element: Element) -> float:
    """A scalar as C takes it. Raises Unsuitable where the type cannot hold it, TypeError and ValueError for no number."""
    if isinstance(x, (str, bytes, bytearray)) or _arrays.is_masked(x):  # whose digits float() would read, or a NaN
        raise TypeError
    try:
        number = float(x)
        fits = element.holds(number)
    except OverflowError:
        fits = False
    if not fits:
        raise Unsuitable(f"is {x}, expected {element.numbers} for {element.name}")
    return number


class Signature:
    """A kernel's signature, and the plans of its calls."""

    def __init__(self, handle: c.c_void_p):
        self._handle = handle
        self.name: str = text_of(lib.tcc_kernel_name(handle))
        self.args = tuple(_argument(handle, i) for i in range(lib.tcc_kernel_arg_count(handle)))
        self.dims: tuple[str, ...] = tuple(
            text_of(lib.tcc_kernel_dim_name(handle, i)) for i in range(lib.tcc_kernel_dim_count(handle)))
        self.inputs = tuple(a for a in self.args if a.role != "out")
        self.outputs = tuple(a for a in self.args if a.role == "out")
        self.scalars = tuple(a.role == "scalar" for a in self.args)
        self._elements = tuple(ELEMENTS[a.type] for a in self.args)
        self.first = self.scalars.index(False)  # the first array
        self.written = tuple(i for i, a in enumerate(self.args) if a.role in WRITTEN)
        # Arguments as C takes them: an address, or a double.
        self._pack = struct.Struct("".join("d" if s else "Q" for s in self.scalars)).pack
        self._plans: dict[Any, Plan] = {}
        self._text = str(self)  # torch.compile cannot trace the making of it

    def __str__(self) -> str:
        return (f"{self.name}({', '.join(('inout ' if a.role == 'inout' else '') + str(a) for a in self.inputs)}) -> "
                f"({', '.join(map(str, self.outputs))})")

    # ---- a call's arguments ----------------------------------------------------------------

    def by_position(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the signature."""
        names = [a.name for a in self.inputs]
        if len(args) > len(names):
            raise ArgumentError(f"{self.name} takes {len(names)} arguments, and {len(args)} were given: {self._text}")
        given = dict(zip(names, args))
        for name, value in named.items():
            if name not in names:
                raise ArgumentError(f"{self.name} has no parameter '{name}': {self._text}")
            if name in given:
                raise ArgumentError(f"{self.name} was given '{name}' twice")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            lacking = "', '".join(missing)
            raise ArgumentError(f"{self.name} lacks '{lacking}': {self._text}")
        return tuple(given[name] for name in names)

    def _read(self, given: tuple[Any, ...]) -> list[Any]:
        """For each argument the view of its array, or its number."""
        values: list[Any] = []
        try:
            for is_scalar, x in zip(self.scalars, given):
                values.append(_number(x, self._elements[len(values)]) if is_scalar else _arrays.read(x))
        except Unsuitable as why:
            raise ArgumentError(f"{self.name}: '{self.args[len(values)].name}' {why}") from None
        except (TypeError, ValueError):
            if not self.scalars[len(values)]:
                raise
            raise ArgumentError(f"{self.name}: '{self.args[len(values)].name}' is a scalar, and got "
                                f"{type(x).__name__}") from None
        return values

    def outputs_of(self, out: Any) -> tuple[Any, ...]:
        """out= as a tuple with an array for each output."""
        if isinstance(out, dict):
            unknown = [name for name in out if name not in {a.name for a in self.outputs}]
            if unknown:
                raise ArgumentError(f"{self.name} has no output '{unknown[0]}': {self}")
            out = tuple(out[a.name] for a in self.outputs if a.name in out)
        outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if len(outs) != len(self.outputs):
            wanted = ", ".join(a.name for a in self.outputs) or "none"
            raise ArgumentError(f"{self.name}: out= has {len(outs)} arrays, expected one for each output: {wanted}")
        return outs

    def _shape_of(self, argument: Argument, element: Element, view: View) -> tuple[tuple[int, ...], bool]:
        """Checks an array's type and rank; returns its shape in elements, and whether it must be packed."""
        dtype = view.dtype
        packed = element.bits < 8 and dtype == PACKED
        if dtype != element.dtype and not packed:
            also = f", or {PACKED} with two elements in each byte," if element.bits < 8 else ""
            raise ArgumentError(f"{self.name}: '{argument.name}' has dtype {dtype}, expected {element.dtype}{also} "
                                f"for {element.name}")
        shape = view.shape
        if len(shape) != len(argument.shape):
            raise ArgumentError(f"{self.name}: '{argument.name}' has {len(shape)} dimensions, expected "
                                f"{len(argument.shape)}: {argument}")
        if packed and shape:
            shape = (*shape[:-1], shape[-1] * 2)
        return shape, element.bits < 8 and not packed

    def _bind(self, bound: dict[str, tuple[int, str]], argument: Argument, shape: tuple[int, ...]) -> None:
        """Binds the extents of an array, and rejects those that differ from earlier ones."""
        for axis, (wanted, extent) in enumerate(zip(argument.shape, shape)):
            if isinstance(wanted, str) and wanted not in self.dims:
                continue  # computed
            known, where = (wanted, "the kernel") if isinstance(wanted, int) else bound.setdefault(
                wanted, (extent, f"'{argument.name}'"))
            if known != extent:
                name = f"{wanted} " if isinstance(wanted, str) else ""
                raise ArgumentError(f"{self.name}: dimension {axis} of '{argument.name}', {name}in {argument}, is "
                                    f"{extent}, and {known} in {where}")

    def solve(self, bound: dict[str, tuple[int, str]], shapes: Mapping[int, tuple[int, ...]]) -> dict[str, int]:
        """The extents of all dimensions but strides. Those that no array has by itself are computed from what is
        computed of them, which must be what the others say."""
        dims = (c.c_int64 * len(self.dims))(*(bound[d][0] if d in bound else -1 for d in self.dims))
        arrays = [(c.c_int64 * len(shape))(*shape) for shape in shapes.values()]
        pointers = dict(zip(shapes, (c.cast(a, c.c_void_p) for a in arrays)))
        if not lib.tcc_kernel_solve(self._handle, (c.c_void_p * len(self.args))(
                *(pointers.get(i) for i in range(len(self.args)))), dims):
            unknown = [d for d, n in zip(self.dims, dims) if n < 0]
            raise ArgumentError(f"{self.name}: the shapes of its arguments leave open what {unknown[0]} is: {self}")
        extents = dict(zip(self.dims, dims))
        for i, shape in shapes.items():
            for axis, (wanted, extent) in enumerate(zip(self.args[i].shape, shape)):
                known = extent_of(wanted, extents)
                if known != extent and isinstance(wanted, str):
                    where = ", ".join(f"{d} {extents[d]}" for d in dict.fromkeys(names_in(wanted)))
                    raise ArgumentError(f"{self.name}: dimension {axis} of '{self.args[i].name}', {wanted} in "
                                        f"{self.args[i]}, is {extent}, and {known} with {where}")
        return extents
    def _bind_strides(self, bound: dict[str, int], argument: Argument, shape: tuple[int, ...],
                      strides: tuple[int, ...] | None) -> None:
        """Binds the strides of an array, in elements."""
        if strides is not None and (argument.strides is None or min(strides) < 0):
            also = ", or declare it strided" if argument.strides is None else ""
            raise ArgumentError(f"{self.name}: '{argument.name}' {_arrays.why_not_contiguous(shape, strides)}{also}")
        for axis, (wanted, stride) in enumerate(zip(argument.strides or (), _arrays.places(shape, strides))):
            if isinstance(wanted, str):
                bound[wanted] = stride
            elif wanted != stride and shape[axis] > 1:
                raise ArgumentError(f"{self.name}: stride {axis} of '{argument.name}' is {stride}, and {wanted} in the "
                                    "kernel")

    def _strides_of(self, argument: Argument, view: View, packed: bool, to_pack: bool) -> tuple[int, ...] | None:
        """Those of an array's elements."""
        strides = view.strides
        if strides is None or (to_pack and argument.strides is not None):
            return None
        if not packed or argument.strides is None:
            return strides
        if strides[-1] != 1:
            raise ArgumentError(f"{self.name}: '{argument.name}' {_arrays.why_not_contiguous(view.shape, strides)}")
        return (*(2 * stride for stride in strides[:-1]), 1)  # of halves of bytes

    def _place(self, places: dict[int, str], argument: Argument, view: View) -> None:
        places.setdefault(view.ordinal, argument.name)
        if len(places) > 1:
            first, second = (f"'{name}' " + ("on the host" if o == HOST else f"on GPU {o}")
                             for o, name in places.items())
            raise ArgumentError(f"{self.name}: {first}, but {second}: all arrays must be in one place")

    def _make_plan(self, values: list[Any], kinds: tuple[Any, ...]) -> Plan:
        """Checks arguments, and caches the result."""
        bound: dict[str, tuple[int, str]] = {}
        places: dict[int, str] = {}
        strides: dict[str, int] = {}
        shapes: dict[int, tuple[int, ...]] = {}
        packs, sizes = [], [0] * len(values)
        for i, (a, v) in enumerate(zip(self.args, values)):
            if a.role == "scalar":
                continue
            shape, to_pack = self._shape_of(a, ELEMENTS[a.type], v)
            self._bind(bound, a, shape)
            shapes[i] = shape
            packed = v.dtype == PACKED and ELEMENTS[a.type].bits < 8
            self._bind_strides(strides, a, shape, self._strides_of(a, v, packed, to_pack))
            self._place(places, a, v)
            packs += [i] * to_pack
            sizes[i] = math.prod(v.shape) if to_pack else bytes_of(a, v)
        dims = self.solve(bound, shapes)
        outputs = []
        for a in self.outputs:
            shape = tuple(extent_of(d, dims) for d in a.shape)
            for d, extent in zip(a.shape, shape):
                if extent < 0:
                    raise ArgumentError(f"{self.name}: '{a.name}' would have {d} = {extent}: {a}")
            outputs.append((shape, ELEMENTS[a.type].dtype))
            if len(values) < len(self.args):
                self._bind_strides(strides, a, shape, None)
        dims.update(strides)
        ordinal, = places
        extents = struct.pack(f"{len(self.dims)}q", *(dims[d] for d in self.dims))
        plan = Plan(extents, tuple(outputs), tuple(packs), tuple(sizes), ordinal)
        if len(self._plans) == _MAX_PLANS:
            self._plans.clear()
        self._plans[kinds] = plan
        return plan

    def _check_written(self, plan: Plan, values: list[Any]) -> None:
        """Checks that arrays which are written can be, and share no memory with others."""
        for i in self.written:
            if i >= len(values):  # here begin outputs that are yet to be made
                break
            if not _arrays.is_writable(values[i]):
                raise ArgumentError(f"{self.name}: '{self.args[i].name}' is written, and the array is read-only")
            for j, other in enumerate(values):
                if i != j and plan.sizes[j] and _arrays.overlap(values[i], plan.sizes[i], other, plan.sizes[j]):
                    raise ArgumentError(f"{self.name}: '{self.args[i].name}', which is written, shares memory with "
                                        f"'{self.args[j].name}': pass a copy of one of them")

    def look(self, args: tuple[Any, ...], out: Any, named: Mapping[str, Any]) -> tuple[Plan, list[Any]]:
        """Checks the arguments: returns their plan, and their views or numbers."""
        if named or len(args) != len(self.inputs):
            args = self.by_position(args, named)
        values = self._read(args if out is None else (*args, *self.outputs_of(out)))
        kinds = tuple((v.kind, v.strides) for v in values if isinstance(v, View))
        plan = self._plans.get(kinds) or self._make_plan(values, kinds)
        self._check_written(plan, values)
        for i in plan.packs:
            values[i] = _arrays.pack(values[i])
        return plan, values

    def pack(self, values: list[Any]) -> bytes:
        """Views, addresses and numbers as C takes them."""
        return self._pack(*(v.address if isinstance(v, View) else v for v in values))

    def allocate(self, plan: Plan, values: list[Any]) -> list[Any]:
        """New arrays for the outputs."""
        return [_arrays.allocate(values[self.first], shape, dtype) for shape, dtype in plan.outputs]

    def plan(self, args: tuple[Any, ...], out: Any, named: Mapping[str, Any]) -> tuple[Plan, list[Any]]:
        """The plan of a call, and views or numbers for all arguments including outputs."""
        plan, values = self.look(args, out, named)
        if out is None:
            values += [_arrays.read(x) for x in self.allocate(plan, values)]
        return plan, values

    @property
    def takes(self) -> tuple[tuple[str, str, str], ...]:
        """Equal for two kernels that accept the same arguments."""
        return tuple((a.name, a.type, a.role) for a in self.args)

    def sizes(self, values: list[Any]) -> list[int | None]:
        """The bytes of each array; None for numbers."""
        return [None if a.role == "scalar" else bytes_of(a, v) for a, v in zip(self.args, values)]
