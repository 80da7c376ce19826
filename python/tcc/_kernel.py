"""Kernels: from a source text to a function of arrays.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import ctypes as c
import os
import struct
import threading
from typing import Any, Mapping, NamedTuple

from . import _arrays, _gpu, _lib
from ._arrays import HOST, Unsuitable, View
from ._elements import ELEMENTS, PACKED, Element
from ._errors import ArgumentError, LibraryError
from ._lib import IN, INOUT, OUT, SCALAR, lib, text_of

DEFAULT_TARGET = "sm_90a"  # where there is no GPU
_LEVELS = {"tensor": _lib.IR, "tile": _lib.TILE, "async": _lib.ASYNC, "target": _lib.TIR}
_WRITTEN = ("out", "inout")
_ROLES = {IN: "in", OUT: "out", INOUT: "inout", SCALAR: "scalar"}


class Argument(NamedTuple):
    """A parameter or an output of a kernel."""

    name: str
    type: str
    """The element type: "f16", …"""
    role: str
    """"in", "out", "inout" or "scalar"."""
    shape: tuple[str | int, ...]
    """A name or a number for each dimension."""

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + (f"[{', '.join(map(str, self.shape))}]" if self.shape else "")


def _argument(kernel: c.c_void_p, i: int) -> Argument:
    info = lib.tcc_kernel_arg(kernel, i).contents
    shape = tuple(text_of(info.dims[d]) if info.dims[d] else info.extents[d] for d in range(info.rank))
    return Argument(text_of(info.name), text_of(info.type), _ROLES[info.role], shape)


class _Plan(NamedTuple):
    """What calls with arrays of the same shapes, types and places have in common."""

    extents: bytes  # of the kernel's dims, as C takes them
    outputs: tuple[tuple[tuple[int, ...], str], ...]  # shapes and types
    packs: tuple[int, ...]  # arguments that are packed first
    ordinal: int  # HOST, or the GPU's


_MAX_PLANS = 4096  # of a kernel, before all are forgotten


class Kernel:
    """A compiled kernel, which is called with arrays. ``tcc.jit`` makes it."""

    def __init__(self, source: bytes, file: str | None, kernel: str | None, defines: dict[str, int],
                 target: str | None, tiles: int, interpret: bool):
        self._source, self._file, self._defines, self._tiles = source, file, defines, tiles
        self._asked_target = target
        self._lock = threading.Lock()
        self._plans: dict[Any, _Plan] = {}
        self._handles: dict[int, c.c_void_p] = {}  # the kernel on each GPU
        self._modules: dict[int, _lib.Module] = {}
        self._gpus = None if interpret else _gpu.gpus()
        self._described = c.c_void_p()
        program = self._load()
        self._index = self._find(program, kernel)
        handle = lib.tcc_program_kernel_at(program, self._index)
        self.name: str = text_of(lib.tcc_kernel_name(handle))
        """The kernel's name."""
        self.args: tuple[Argument, ...] = tuple(_argument(handle, i) for i in range(lib.tcc_kernel_arg_count(handle)))
        """Its parameters, then its outputs."""
        self.dims: tuple[str, ...] = tuple(
            text_of(lib.tcc_kernel_dim_name(handle, i)) for i in range(lib.tcc_kernel_dim_count(handle)))
        """The names of its dimensions that are known by the shapes of its arguments alone."""
        self._inputs = tuple(a for a in self.args if a.role != "out")
        self._outputs = tuple(a for a in self.args if a.role == "out")
        self._n_inputs, self._n_dims, self._n_args = len(self._inputs), len(self.dims), len(self.args)
        self._scalars = tuple(a.role == "scalar" for a in self.args)
        self._first = self._scalars.index(False)  # the first array
        self._written = tuple(i for i, a in enumerate(self.args) if a.role in _WRITTEN)
        # Arguments as C takes them: an address, or a double.
        self._pack = struct.Struct("".join("d" if s else "Q" for s in self._scalars)).pack

    # ---- compiling -------------------------------------------------------------------------

    @property
    def target(self) -> str:
        """What it is compiled for: "sm_90a", …"""
        if self._asked_target:
            return self._asked_target
        return self._gpus.target(self._gpus.current()) if self._gpus else DEFAULT_TARGET

    def _options(self, emit: int) -> _lib.CompileOptions:
        return _lib.compile_options(self.target, self._file, self._defines, self._tiles, emit)

    def _load(self) -> c.c_void_p:
        """A program that describes the kernels; on the current GPU it is loaded, where that runs the target."""
        if self._gpus and b"\0" not in self._source:
            ordinal = self._gpus.current()
            try:
                return self._gpus.program(ordinal, self._source, self._options(_lib.DEFAULT))
            except LibraryError as error:
                if error.status != text_of(lib.tcc_status_name(_lib.TARGET)) or not self._asked_target:
                    raise
                self._gpus = None  # another GPU's: to look at, and to interpret
        listener = _lib.Listener()
        callback = _lib.DIAGNOSTIC_FN(listener.listen)
        manifest = self._module(_lib.TIR).manifest.encode()
        listener.check(lib.tcc_program_describe(manifest, callback, None, self._described))
        return self._described

    def __del__(self) -> None:
        if lib is not None and getattr(self, "_described", None):
            lib.tcc_program_destroy(self._described)

    @staticmethod
    def _find(program: c.c_void_p, name: str | None) -> int:
        names = [text_of(lib.tcc_kernel_name(lib.tcc_program_kernel_at(program, i)))
                 for i in range(lib.tcc_program_kernel_count(program))]
        if name is None and len(names) == 1:
            return 0
        if name in names:
            return names.index(name)
        known = ", ".join(names)
        raise ArgumentError(f"the source has no kernel '{name}': it has {known}" if name else
                            f"the source has several kernels: say which with kernel=, of {known}")

    def _module(self, emit: int) -> _lib.Module:
        with self._lock:
            if emit not in self._modules:
                self._modules[emit] = _lib.Module(self._source, self._options(emit))
            return self._modules[emit]

    @property
    def code(self) -> bytes:
        """What a GPU's driver loads: PTX, or AMD's code object."""
        return self._module(_lib.DEFAULT).output

    @property
    def ptx(self) -> str:
        """The PTX, of NVIDIA's targets."""
        code = self.code
        if code.startswith(b"\x7fELF"):
            raise ArgumentError(f"{self.target} has no PTX: code has its code object")
        return code.decode()

    @property
    def schedule(self) -> str:
        """How it is computed, in the language's own syntax: docs/language.md."""
        return self._module(_lib.TIR).schedule

    @property
    def manifest(self) -> str:
        """All that a host must know to launch it, as JSON: docs/abi.md."""
        return self._module(_lib.TIR).manifest

    def ir(self, level: str = "target") -> str:
        """Its IR of a level, "tensor", "tile", "async" or "target": docs/ir.md."""
        if level not in _LEVELS:
            raise ArgumentError(f"there is no level '{level}': " + ", ".join(_LEVELS))
        return self._module(_LEVELS[level]).output.decode()

    # ---- arguments -------------------------------------------------------------------------

    def _by_position(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the signature."""
        names = [a.name for a in self._inputs]
        if len(args) > len(names):
            raise ArgumentError(f"{self.name} takes {len(names)} arguments, and {len(args)} were given: {self}")
        given = dict(zip(names, args))
        for name, value in named.items():
            if name not in names:
                raise ArgumentError(f"{self.name} has no parameter '{name}': {self}")
            if name in given:
                raise ArgumentError(f"{self.name} was given '{name}' twice")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise ArgumentError(f"{self.name} lacks " + ", ".join(f"'{m}'" for m in missing) + f": {self}")
        return tuple(given[name] for name in names)

    def _read(self, given: tuple[Any, ...]) -> tuple[list[Any], list[Any], tuple[Any, ...]]:
        """Of each argument a view of its array or its number; these as C takes them; and what their plan is known by."""
        values: list[Any] = []
        words: list[Any] = []
        kinds = []
        readers, read = _arrays.readers, _arrays.read
        try:
            for is_scalar, x in zip(self._scalars, given):
                if is_scalar:
                    values.append(float(x))
                    words.append(values[-1])
                else:
                    view = readers.get(type(x), read)(x)
                    values.append(view)
                    words.append(view[0])
                    kinds.append(view[1])
        except Unsuitable as why:
            raise ArgumentError(f"{self.name}: '{self.args[len(values)].name}' {why}") from None
        except (TypeError, ValueError):
            if not self._scalars[len(values)]:
                raise
            raise ArgumentError(f"{self.name}: '{self.args[len(values)].name}' is a scalar, and got "
                                f"{type(x).__name__}") from None
        return values, words, tuple(kinds)

    def _outputs_of(self, out: Any) -> tuple[Any, ...]:
        """out= as a tuple with an array for each output."""
        if isinstance(out, dict):
            unknown = [name for name in out if name not in {a.name for a in self._outputs}]
            if unknown:
                raise ArgumentError(f"{self.name} has no output '{unknown[0]}': {self}")
            out = tuple(out[a.name] for a in self._outputs if a.name in out)
        outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if len(outs) != len(self._outputs):
            wanted = ", ".join(a.name for a in self._outputs) or "none"
            raise ArgumentError(f"{self.name}: out= has {len(outs)} arrays, wants one for each output: {wanted}")
        return outs

    def _shape_of(self, argument: Argument, element: Element, view: View) -> tuple[tuple[int, ...], bool]:
        """An array's shape in elements, after its type and rank are checked, and whether it is to be packed."""
        dtype = view.dtype
        packed = element.bits < 8 and dtype == PACKED
        if dtype != element.dtype and not packed:
            also = f" or {PACKED}, two in each" if element.bits < 8 else ""
            raise ArgumentError(f"{self.name}: '{argument.name}' is of {dtype}, wants {element.name}, which is "
                                f"{element.dtype}{also}")
        shape = view.shape
        if len(shape) != len(argument.shape):
            raise ArgumentError(f"{self.name}: '{argument.name}' has {len(shape)} dimensions, wants "
                                f"{len(argument.shape)}: {argument}")
        if packed and shape:
            shape = (*shape[:-1], shape[-1] * 2)
        return shape, element.bits < 8 and not packed

    def _bind(self, bound: dict[str, tuple[int, str]], argument: Argument, shape: tuple[int, ...]) -> None:
        """Notes the extents of an array, or refuses those that are not what they were before."""
        for axis, (wanted, extent) in enumerate(zip(argument.shape, shape)):
            known, where = (wanted, "the kernel") if isinstance(wanted, int) else bound.setdefault(
                wanted, (extent, f"'{argument.name}'"))
            if known != extent:
                name = f"{wanted} " if isinstance(wanted, str) else ""
                raise ArgumentError(f"{self.name}: dimension {axis} of '{argument.name}', {name}in {argument}, is "
                                    f"{extent}, and {known} in {where}")

    def _place(self, places: dict[int, str], argument: Argument, view: View) -> None:
        places.setdefault(view.ordinal, argument.name)
        if len(places) > 1:
            first, second = (f"'{name}' " + ("on the host" if o == HOST else f"on GPU {o}")
                             for o, name in places.items())
            raise ArgumentError(f"{self.name}: {first}, and {second}: all are to be in one place")

    def _make_plan(self, values: list[Any], kinds: tuple[Any, ...]) -> _Plan:
        """Checks arguments, and keeps what is known of them."""
        bound: dict[str, tuple[int, str]] = {}
        places: dict[int, str] = {}
        packs = []
        for i, (a, v) in enumerate(zip(self.args, values)):
            if a.role == "scalar":
                continue
            v = View._make(v)
            shape, to_pack = self._shape_of(a, ELEMENTS[a.type], v)
            self._bind(bound, a, shape)
            self._place(places, a, v)
            packs += [i] * to_pack
        outputs = []
        for a in self._outputs:  # whose indices all occur in an argument
            shape = tuple(d if isinstance(d, int) else bound[d][0] for d in a.shape)
            outputs.append((shape, ELEMENTS[a.type].dtype))
        ordinal, = places
        if ordinal != HOST and not self._gpus:
            raise ArgumentError(f"{self.name} is not for GPU {ordinal}: it is interpreted, for {self.target}, and takes "
                                "arrays of the host")
        extents = struct.pack(f"{len(self.dims)}q", *(bound[d][0] for d in self.dims))
        plan = _Plan(extents, tuple(outputs), tuple(packs), ordinal)
        if len(self._plans) == _MAX_PLANS:
            self._plans.clear()
        self._plans[kinds] = plan
        return plan

    # ---- running ---------------------------------------------------------------------------

    def __call__(self, *args: Any, out: Any = None, stream: Any = None, **named: Any) -> Any:
        """Computes the kernel.

        args, named  its parameters in the order of the signature, or by name: arrays that lie row by row, and numbers.
                     Those of torch, cupy, jax and numpy will do, and whatever has ``__dlpack__``,
                     ``__cuda_array_interface__`` or a buffer
        out          arrays for the outputs, one or a tuple, or a dict by name; None: new ones, of the library of
                     the first array, on its device
        stream       of the GPU, as a number, or as an object that has one; None: on which that library works now

        Returns the output, or a tuple of several; None where there are ``inout`` parameters alone. On a GPU that is
        when the kernel was enqueued. Arrays of the host are copied to the GPU and back; without one the interpreter
        computes them. Raises ArgumentError for what does not fit, with the argument and the dimension.
        """
        return self._run(args, out, stream, named, self._launch)

    def prepare(self, *args: Any, out: Any = None, **named: Any) -> None:
        """Loads what a call with such arrays of a GPU runs, and computes nothing: before a CUDA graph is captured."""
        self._run(args, out, None, named, self._prepare)

    def _run(self, args: tuple[Any, ...], out: Any, stream: Any, named: Mapping[str, Any], go: Any) -> Any:
        if named or len(args) != self._n_inputs:
            args = self._by_position(args, named)
        values, words, kinds = self._read(args if out is None else (*args, *self._outputs_of(out)))
        plan = self._plans.get(kinds) or self._make_plan(values, kinds)
        for i in self._written:
            if i < len(values) and values[i][2] != "torch" and not _arrays.is_writable(View._make(values[i])):
                raise ArgumentError(f"{self.name}: '{self.args[i].name}' is written, and the array is read-only")
        for i in plan.packs:
            values[i] = _arrays.pack(View._make(values[i]))
            words[i] = values[i].address
        if out is not None:
            go(plan, values, words, stream)
            return out
        like = View._make(values[self._first])
        results = [_arrays.allocate(like, shape, dtype) for shape, dtype in plan.outputs]
        new = [_arrays.read(r) for r in results]
        go(plan, values + new, words + [v[0] for v in new], stream)
        results = [_arrays.finish(like.library, r) for r in results]
        return results[0] if len(results) == 1 else tuple(results) or None

    def _handle(self, ordinal: int) -> c.c_void_p:
        """The kernel on a GPU, which is current."""
        assert self._gpus
        target = self._asked_target or self._gpus.target(ordinal)
        options = _lib.compile_options(target, self._file, self._defines, self._tiles, _lib.DEFAULT)
        program = self._gpus.program(ordinal, self._source, options)
        handle: c.c_void_p = lib.tcc_program_kernel_at(program, self._index)
        self._handles[ordinal] = handle
        return handle

    def _on_gpu(self, function: Any, plan: _Plan, words: list[Any], ordinal: int, library: str, *stream: int) -> None:
        """Calls tcc_kernel_launch or tcc_kernel_prepare with the GPU current."""
        gpus = self._gpus
        assert gpus
        entered = gpus.enter(ordinal, library)
        try:
            handle = self._handles.get(ordinal) or self._handle(ordinal)
            status = function(handle, plan.extents, self._n_dims, self._pack(*words), self._n_args, *stream)
            if status:
                gpus.listener.check(status)
        finally:
            if entered is not None:
                gpus.leave(entered)

    def _launch(self, plan: _Plan, values: list[Any], words: list[Any], stream: Any) -> None:
        ordinal = plan.ordinal
        if ordinal == HOST:
            return self._launch_copies(plan, values) if self._gpus else self._interpret(plan, values)
        first = values[self._first]
        if stream is None:
            stream = _gpu.current_stream(first[2], first[3], ordinal)
        elif not isinstance(stream, int):
            stream = _gpu.stream_number(stream)
        self._on_gpu(lib.tcc_kernel_launch, plan, words, ordinal, first[2], stream)

    def _prepare(self, plan: _Plan, values: list[Any], words: list[Any], stream: Any) -> None:
        if plan.ordinal != HOST:
            self._on_gpu(lib.tcc_kernel_prepare, plan, words, plan.ordinal, values[self._first][2])

    def _launch_copies(self, plan: _Plan, values: list[Any]) -> None:
        """Arrays of the host go to the GPU and back."""
        gpus = self._gpus
        assert gpus
        ordinal = gpus.current()
        device = gpus.open(ordinal)
        check, copies = gpus.listener.check, []
        try:
            for argument, v in zip(self.args, values):
                if argument.role == "scalar":
                    copies.append(v)
                    continue
                v = View._make(v)
                address = c.c_uint64()
                size = _bytes(argument, v)
                check(lib.tcc_device_alloc(device, size, address))
                copies.append(address.value)
                if argument.role != "out":
                    check(lib.tcc_device_write(device, address, v.address, size))
            self._on_gpu(lib.tcc_kernel_launch, plan, copies, ordinal, "", 0)
            for argument, v, copy in zip(self.args, values, copies):
                if argument.role in _WRITTEN:
                    check(lib.tcc_device_read(device, v[0], copy, _bytes(argument, View._make(v))))
        finally:
            for argument, copy in zip(self.args, copies):
                if argument.role != "scalar":
                    lib.tcc_device_free(device, copy)
            lib.tcc_device_close(device)

    def _interpret(self, plan: _Plan, values: list[Any]) -> None:
        scalars = [c.c_double(v) if isinstance(v, float) else None for v in values]
        addresses = [c.addressof(s) if s is not None else v[0] for s, v in zip(scalars, values)]
        pointers = (c.c_void_p * len(addresses))(*addresses)
        module = self._module(_lib.TIR)
        with self._lock:  # of the module's context
            module.listener.check(lib.tcc_interpret_elements(module.context, module.handle, self.name.encode(),
                                                             plan.extents, pointers, None))

    # ---- as an operator of torch -----------------------------------------------------------

    @property
    def identity(self) -> tuple[Any, ...]:
        """What it was compiled from."""
        return self._source, self._file, self.name, sorted(self._defines.items()), self._asked_target, self._tiles

    def torch_op(self, name: str | None = None) -> Any:
        """The kernel as a custom operator of torch, which torch.compile and torch.export see as one.

        name  "namespace::name"; None: one of its own. Each may be registered once

        It takes the parameters by position, and returns what a call returns; ``inout`` parameters are known to be
        written. It has no derivative; ``register_autograd`` of the result gives it one.
        """
        from . import _torch

        return _torch.operator(self, name)

    # ---- for people ------------------------------------------------------------------------

    def __str__(self) -> str:
        return (f"{self.name}({', '.join(('inout ' if a.role == 'inout' else '') + str(a) for a in self._inputs)}) -> "
                f"({', '.join(map(str, self._outputs))})")

    def __repr__(self) -> str:
        return f"<tcc.Kernel {self} for {self.target}>"


def _bytes(argument: Argument, view: View) -> int:
    """What an array takes, as a kernel has it."""
    n = 1
    for extent in view.shape:
        n *= extent
    bits = ELEMENTS[argument.type].bits
    return n if view.dtype == PACKED else (n * bits + 7) // 8


def jit(source: str | os.PathLike[str], *, kernel: str | None = None, defines: Mapping[str, int] | None = None,
        target: str | None = None, tiles: int = 0, interpret: bool = False) -> Kernel:
    """Compiles a kernel: a function of arrays.

    source     the text of a program, or the path of a file as a ``pathlib.Path``
    kernel     which of its kernels; None: the only one
    defines    numbers for dimensions and constants: ``-D`` of the command line
    target     "sm_90a", "gfx1100", …; None: the GPU's, or without one sm_90a
    tiles      so many tiles at most are compiled for a launch to choose from; 0: all there are
    interpret  compute on the CPU, with a model of the GPU that finds races, also where there is a GPU

    What is compiled for the GPU is kept on disk for later processes: docs/embedding.md.
    Raises CompileError where the program is wrong.

    >>> import numpy
    >>> scale = jit("kernel scale(A: f16[M, N], alpha: f32) -> (B: f32[M, N]) { B[m, n] = alpha * f32(A[m, n]); }")
    >>> scale(numpy.array([[1, 2], [3, 4]], numpy.float16), 0.5)
    array([[0.5, 1. ],
           [1.5, 2. ]], dtype=float32)
    """
    file = None
    if isinstance(source, os.PathLike):
        file = os.fspath(source)
        with open(file, "rb") as f:
            text = f.read()
    else:
        text = source.encode()
    return Kernel(text, file, kernel, dict(defines or {}), target, tiles, interpret)
