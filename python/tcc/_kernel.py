"""Kernels: from a source text to a function of arrays.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import ctypes as c
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Literal, Mapping

from . import _arrays, _bench, _gpu, _lib, _quick, _torch, _tune
from ._arrays import HOST
from ._bench import Bench, Rival
from ._errors import ArgumentError, Error, LibraryError
from ._lib import lib, text_of
from ._signature import WRITTEN, Argument, Plan, Signature, bytes_of
from ._timeline import Texts, Timeline, measured
from ._tune import Tuned, TuneProgress

if TYPE_CHECKING:
    import inspect

    from ._launcher import Launcher

When = Literal["never", "at once", "background"]
On = Literal["gpu", "interp"]
_ON = ("gpu", "interp")

DEFAULT_TARGET = "sm_90a"  # without a GPU
_LEVELS = {"tensor": _lib.IR, "tile": _lib.TILE, "async": _lib.ASYNC, "target": _lib.TIR}


class Kernel:
    """A compiled kernel, called with arrays; made by ``tcc.jit``."""

    def __init__(self, source: bytes, file: str | None, kernel: str | None, defines: dict[str, int],
                 target: str | None, tiles: int, on: On | None, policy: _gpu.Policy):
        self._made_of = source, file, kernel, defines, target, tiles, on, policy
        self._source, self._file, self._kernel, self._defines, self._tiles = source, file, kernel, defines, tiles
        self._asked_target, self._policy = target, policy
        self._specializes = policy[0] != "never"
        self._lock = threading.Lock()
        self._handles: dict[int, c.c_void_p] = {}  # the kernel on each GPU
        self._modules: dict[int, _lib.Module] = {}
        self._on = on or on_environment()
        self._gpus = None if self._on == "interp" else _gpu.gpus()
        self._why_interpreted = "" if self._on == "interp" else _gpu.why_none()
        self._insist(kernel)
        if target == "native":
            native = _gpu.gpus()
            if not native:
                raise Error(f"target='native' is the GPU's, and {_gpu.why_none()}")
            self._asked_target = native.target(native.current())
        self._described = c.c_void_p()
        try:
            program = self._load()
        except LibraryError:
            if not kernel:
                raise
            self._kernel = None  # there may be other kernels, which the message lists
            program = self._load()
        self._index = self._find(program, kernel)
        handle = lib.tcc_program_kernel_at(program, self._index)
        self._signature = Signature(handle)
        self.name: str = self._signature.name
        """The kernel's name."""
        self.args: tuple[Argument, ...] = self._signature.args
        """Its parameters, then its outputs."""
        self.dims: tuple[str, ...] = self._signature.dims
        """The names of its symbolic dimensions, which the shapes of its arguments determine."""
        self._n_dims, self._n_args = len(self.dims), len(self.args)
        self.__doc__ = f"{self._signature}\n\nA compiled kernel; help(tcc.Kernel) describes its methods."
        self._key = _torch.key_of(self)
        self._quick: Launcher | None = None  # as soon as there was a call with tensors of torch

    # ---- compiling -------------------------------------------------------------------------

    @property
    def target(self) -> str:
        """Its target: "sm_90a", …"""
        if self._asked_target:
            return self._asked_target
        return self._gpus.target(self._gpus.current()) if self._gpus else DEFAULT_TARGET

    def _options(self, emit: int) -> _lib.CompileOptions:
        return _lib.compile_options(self.target, self._file, self._kernel, self._defines, self._tiles, emit)

    def _load(self) -> c.c_void_p:
        """A program that describes the kernels; loaded on the current GPU if that runs the target."""
        if self._gpus and b"\0" not in self._source:
            ordinal = self._gpus.current()
            try:
                return self._gpus.program(ordinal, self._source, self._options(_lib.DEFAULT), self._policy)
            except LibraryError as error:
                if error.status != text_of(lib.tcc_status_name(_lib.TARGET)) or not self._asked_target:
                    raise
                self._why_interpreted = f"GPU {ordinal}, {self._gpus.target(ordinal)}, does not run {self._asked_target}"
                self._gpus = None  # it can be inspected and interpreted
                self._insist(self._kernel)
        if self._described:
            return self._described
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

    def _insist(self, name: str | None) -> None:
        """Ends where a GPU was insisted on, and there is none for the kernel."""
        if self._on == "gpu" and self._why_interpreted:
            raise Error(f"{name or 'the kernel'} must run on a GPU, as on= or TCC_ON says, and cannot: {self._why_interpreted}")

    def _module(self, emit: int) -> _lib.Module:
        with self._lock:
            if emit not in self._modules:
                self._modules[emit] = _lib.Module(self._source, self._options(emit))
            return self._modules[emit]

    @property
    def code(self) -> bytes:
        """The image that the GPU's driver loads: PTX, or AMD's code object."""
        return self._module(_lib.DEFAULT).output

    @property
    def ptx(self) -> str:
        """The PTX, for NVIDIA's targets."""
        code = self.code
        if code.startswith(b"\x7fELF"):
            raise ArgumentError(f"{self.target} has no PTX: code has its code object")
        return code.decode()

    @property
    def sass(self) -> str:
        """NVIDIA's machine instructions, below their source lines; needs ptxas and nvdisasm: docs/tools.md."""
        return self._module(_lib.SASS).output.decode()

    @property
    def schedule(self) -> str:
        """Its schedule, in the language's syntax: docs/language.md."""
        return self._module(_lib.TIR).schedule

    @property
    def plan(self) -> str:
        """What a launch runs: its steps, what each reads and stores, and the workspace: docs/tools.md."""
        return self._module(_lib.TIR).plan

    @property
    def manifest(self) -> str:
        """Its manifest, which describes how to launch it, as JSON: docs/abi.md."""
        return self._module(_lib.TIR).manifest

    def ir(self, level: str = "target") -> str:
        """Its IR at a level, "tensor", "tile", "async" or "target": docs/ir.md."""
        if level not in _LEVELS:
            raise ArgumentError(f"there is no level '{level}': " + ", ".join(_LEVELS))
        return self._module(_LEVELS[level]).output.decode()

    # ---- running ---------------------------------------------------------------------------

    def __call__(self, *args: Any, out: Any = None, stream: Any = None, **named: Any) -> Any:
        """Computes the kernel.

        args, named  its parameters, in the order of the signature or by name: row-major arrays, where the kernel says
                     ``strided`` also views of such, and numbers. Arrays may come from torch, cupy, jax and numpy, or
                     have ``__dlpack__``, ``__cuda_array_interface__`` or a buffer
        out          arrays for the outputs: one, a tuple, or a dict by name; None: new ones, of the first array's
                     library, on its device
        stream       a GPU stream, as a number or an object that has one; None: the current stream of that library

        Returns the output, or a tuple of several; None if there are only ``inout`` parameters. On a GPU it returns
        when the kernel has been enqueued. Host arrays are copied to the GPU and back; without a GPU the interpreter
        computes the result. Raises ArgumentError, with the argument and the dimension, if the arguments do not match.
        """
        if _torch.is_tracing():
            return _torch.call(self, args, out, stream, named)
        if named:
            args = self._signature.by_position(args, named)
        if stream is not None and not isinstance(stream, int):
            stream = _gpu.stream_number(stream)
        if self._quick is not None:
            result = self._quick(args, out, stream)
            if result is not NotImplemented:
                return result
        if _torch.is_traced():
            return _torch.call(self, args, out, stream, {})
        return self._run(args, out, stream, {}, self._launch)

    def variant(self, *args: Any, out: Any = None, **named: Any) -> str | None:
        """The name of the variant that such a call runs, such as "layer__64x32"; None if there is nothing to compute.

        >>> import numpy
        >>> product = jit("kernel p(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }",
        ...               target="sm_80", tiles=1)
        >>> A = numpy.ones((8, 64), numpy.float16)
        >>> product.variant(A, A), product.variant(A[:0], A)
        ('p', None)
        """
        plan, values = self._signature.plan(args, out, named)
        handle = lib.tcc_program_kernel_at(self._load(), self._index)
        name = lib.tcc_kernel_variant(handle, plan.extents, self._n_dims, self._signature.pack(values), self._n_args)
        return text_of(name) if name else None

    def prepare(self, *args: Any, out: Any = None, **named: Any) -> None:
        """Loads the code of a call with such GPU arrays, without running it: before capturing a CUDA graph."""
        self._run(args, out, None, named, self._prepare)

    def _run(self, args: tuple[Any, ...], out: Any, stream: Any, named: Mapping[str, Any], go: Any) -> Any:
        plan, values = self._signature.look(args, out, named)
        results = [] if out is not None else self._signature.allocate(plan, values)
        go(plan, values + [_arrays.read(r) for r in results], stream)
        if not named:
            self._teach(args, out, plan, values)
        if out is not None:
            return out
        results = [_arrays.finish(values[self._signature.first].library, r) for r in results]
        return results[0] if len(results) == 1 else tuple(results) or None

    def _teach(self, args: tuple[Any, ...], out: Any, plan: Plan, values: list[Any]) -> None:
        """What such a call launches, where it was one with tensors of torch."""
        views = [v for v in values if isinstance(v, _arrays.View)]
        if not self._gpus or plan.ordinal == HOST or values[self._signature.first].library != "torch":
            return
        if any(v.strides is not None for v in views):
            return
        if self._quick is None:
            self._quick = _quick.launcher(self._signature, self._gpus)
            if self._quick is None:
                return
        kernel: c.c_void_p | _quick.Request = (
            self._request(plan.ordinal) if self._specializes else self._handles[plan.ordinal])
        kinds = [v.kind for v in views]
        self._quick.learn(args, out, _quick.launches(plan, kinds, kernel))

    def _options_on(self, ordinal: int, tiles: int | None = None) -> _lib.CompileOptions:
        assert self._gpus
        target = self._asked_target or self._gpus.target(ordinal)
        return _lib.compile_options(target, self._file, self._kernel, self._defines,
                                    self._tiles if tiles is None else tiles, _lib.DEFAULT)

    def _handle(self, ordinal: int, tiles: int | None = None) -> c.c_void_p:
        """The kernel on the current GPU."""
        assert self._gpus
        program = self._gpus.program(ordinal, self._source, self._options_on(ordinal, tiles), self._policy)
        handle: c.c_void_p = lib.tcc_program_kernel_at(program, self._index)
        return handle

    def _launched(self, ordinal: int, plan: Plan, packed: bytes) -> c.c_void_p:
        """The kernel that a launch runs: this one, which is cached, or one for its extents."""
        if not self._specializes:
            return self._handles.setdefault(ordinal, self._handle(ordinal))
        assert self._gpus
        handle = c.c_void_p()
        self._gpus.listener.check(lib.tcc_jit_kernel_for(
            *self._request(ordinal), plan.extents, self._n_dims, packed, self._n_args, handle))
        return handle

    def _request(self, ordinal: int) -> _quick.Request:
        """How the kernel for a call is asked for."""
        assert self._gpus
        return self._gpus.jit(ordinal, self._policy), self._source, self._options_on(ordinal), self.name.encode()

    def _not_for(self, ordinal: int) -> ArgumentError:
        return ArgumentError(f"{self.name} is not for GPU {ordinal}: it is interpreted, for {self.target}, and takes "
                             "arrays of the host")

    def _on_gpu(self, function: Any, plan: Plan, values: list[Any], ordinal: int, *stream: int) -> None:
        """Calls tcc_kernel_launch or tcc_kernel_prepare with the GPU current."""
        gpus = self._gpus
        if not gpus:
            raise self._not_for(ordinal)
        entered = gpus.enter(ordinal)
        try:
            packed = self._signature.pack(values)
            handle = self._handles.get(ordinal) or self._launched(ordinal, plan, packed)
            status = function(handle, plan.extents, self._n_dims, packed, self._n_args, *stream)
            if status:
                gpus.listener.check(status)
        finally:
            if entered is not None:
                gpus.leave(entered)

    def wait(self) -> None:
        """Waits until no background work is left, for example before capturing a CUDA graph."""
        if self._gpus:
            self._gpus.wait(self._policy)

    def _launch(self, plan: Plan, values: list[Any], stream: int | None) -> None:
        ordinal = plan.ordinal
        if ordinal == HOST:
            if self._gpus:
                return self._launch_copies(plan, values)
            _gpu.warn_once(self.name, self._why_interpreted)
            return self._interpret(plan, values)
        if stream is None:
            first = values[self._signature.first]
            stream = _gpu.current_stream(first.library, first.keep, ordinal)
        self._on_gpu(lib.tcc_kernel_launch, plan, values, ordinal, stream)
        if _arrays.has_jax(values) and self._gpus:
            self._gpus.sync(ordinal)  # jax, which is not aware of the launch, may reuse memory

    def _prepare(self, plan: Plan, values: list[Any], stream: None) -> None:
        if plan.ordinal != HOST:
            self._on_gpu(lib.tcc_kernel_prepare, plan, values, plan.ordinal)

    def _launch_copies(self, plan: Plan, values: list[Any]) -> None:
        """Copies host arrays to the GPU and back."""
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
                address = c.c_uint64()
                size = bytes_of(argument, v)
                check(lib.tcc_device_alloc(device, size, address))
                copies.append(address.value)
                if argument.role != "out" or v.strides is not None:  # what is between elements stays as it is
                    check(lib.tcc_device_write(device, address, v.address, size))
            self._on_gpu(lib.tcc_kernel_launch, plan, copies, ordinal, 0)
            for argument, v, copy in zip(self.args, values, copies):
                if argument.role in WRITTEN:
                    check(lib.tcc_device_read(device, v.address, copy, bytes_of(argument, v)))
        finally:
            for argument, copy in zip(self.args, copies):
                if argument.role != "scalar":
                    lib.tcc_device_free(device, copy)
            lib.tcc_device_close(device)

    def _interpret(self, plan: Plan, values: list[Any], options: Any = None) -> None:
        module = self._module(_lib.TIR)
        arguments = [c.c_double(v) if isinstance(v, float) else v for v in values]
        with self._lock:  # of the module's context
            try:
                module.interpret(self.name, plan.extents, arguments, options)
            except BaseException as error:
                if not isinstance(error, LibraryError):
                    del self._modules[_lib.TIR]  # it was interrupted, and may still run
                raise

    # ---- measuring -------------------------------------------------------------------------

    def bench(self, *args: Any, out: Any = None,
              against: Rival | Mapping[str, Rival] | None = None, **named: Any) -> Bench:
        """Times it on the GPU: warm, with inputs that are not in the L2 cache, like ``tcc-run --bench``.

        args, out, named  as in a call. The arrays are copied and remain unchanged
        against           what to time alternately with it, under the same clocks and temperature: another kernel with
                          the same arguments, a callable without arguments that enqueues work on the default stream,
                          or a dict of these by name

        >>> print(k.bench(A, B, against={"torch": lambda: A @ B}))     # doctest: +SKIP

        The result has the numbers ``us``, ``tflops`` and ``ratio("torch")``. Raises Error without a GPU, since timings
        on the interpreter are meaningless; ``timeline`` has an estimate.
        """
        return _bench.bench(self, args, out, named, against)

    def tune(self, *args: Any, out: Any = None, seconds: float = 60, results: str | os.PathLike[str] | None = None,
             progress: Callable[[TuneProgress], object] | None = None, **named: Any) -> Tuned:
        """Searches for the fastest schedule for such a call, like ``tcc-run --tune``: docs/tuning.md.

        args, out, named  as in a call. The arrays are copied and remain unchanged
        seconds           the approximate duration of the search
        results           the file to which each result is appended, and from which a later search resumes; None: that
                          of tcc-run; "": none
        progress          called with the progress of the search after every step

        >>> tuned = k.tune(A, B, seconds=20)                           # doctest: +SKIP
        >>> C = tuned.kernel(A, B)                                     # doctest: +SKIP

        The result has the numbers ``us`` and ``ratio``, and ``schedule``, to add to the source. The search can be
        interrupted: its measurements are kept. Raises Error without a GPU.
        """
        return _tune.tune(self, args, out, named, seconds, results, progress)

    def tuned(self, *args: Any, out: Any = None, results: str | os.PathLike[str] | None = None, **named: Any) -> Kernel:
        """The kernel with the fastest schedule that the results file has for such a call, or itself if it has none.

        args, out, named  as in a call; nothing is computed
        results           as for ``tune``
        """
        return _tune.tuned(self, args, out, named, results)

    def timeline(self, *args: Any, out: Any = None, cta: int = 0, path: str | os.PathLike[str] | None = None,
                 **named: Any) -> Timeline:
        """What one CTA does and when: docs/timeline.md.

        args, out, named  as in a call. With host arrays, by a model of the machine's speed: the interpreter computes the
                          kernel, and checks it. With arrays on a GPU, measured: the kernel is compiled and launched
                          with instructions that record when its warps wait
        cta               the number of the CTA
        path              a file for its JSON, for ui.perfetto.dev

        Only sm_90a has a model; NVIDIA's GPUs can be measured.

        >>> import numpy
        >>> product = jit("kernel p(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }",
        ...               target="sm_90a", tiles=1)
        >>> A = numpy.ones((8, 64), numpy.float16)
        >>> timeline = product.timeline(A, A)
        >>> timeline.summary.startswith("CTA 0: ")
        True
        >>> {"transfer", "mma"} < {event.get("cat") for event in timeline.events}
        True
        """
        plan, values = self._signature.plan(args, out, named)
        timeline = self._modelled(plan, values, cta) if plan.ordinal == HOST else self._measured(plan, values, cta)
        if path is not None:
            timeline.save(path)
        return timeline

    def _modelled(self, plan: Plan, values: list[Any], cta: int) -> Timeline:
        texts = Texts()
        options = _lib.InterpretOptions(struct_size=c.sizeof(_lib.InterpretOptions), timeline=texts.json,
                                        summary=texts.summary, timeline_cta=cta)
        self._interpret(plan, values, c.byref(options))
        return texts.take()

    def _measured(self, plan: Plan, values: list[Any], cta: int) -> Timeline:
        gpus = self._gpus
        if not gpus:
            raise self._not_for(plan.ordinal)
        options = self._options_on(plan.ordinal)
        options.timeline, options.timeline_cta = True, cta
        entered = gpus.enter(plan.ordinal)
        try:
            call = plan.extents, self._n_dims, self._signature.pack(values), self._n_args
            return measured(gpus, plan.ordinal, _lib.Module(self._source, options), self.name, call)
        finally:
            gpus.leave(entered)

    def _with(self, schedule: str) -> Kernel:
        """The kernel with a schedule appended to its source."""
        return Kernel(self._source + b"\n" + schedule.encode(), self._file, self.name, self._defines, self._asked_target,
                      self._tiles, self._on, self._policy)

    # ---- as an operator of torch -----------------------------------------------------------

    @property
    def identity(self) -> tuple[Any, ...]:
        """The source and the options that it was compiled from."""
        source, file, _, defines, *how = self._made_of
        return source, file, self.name, sorted(defines.items()), *how

    def torch_op(self, name: str | None = None) -> Any:
        """The kernel as a custom torch operator, which torch.compile and torch.export trace as one.

        name  "namespace::name"; None: a unique one. A name can only be registered once

        It takes the parameters by position, and returns what a call returns; it is declared to write to ``inout``
        parameters. It has no derivative; ``register_autograd`` of the result supplies one.
        """
        return _torch.operator(self, name)

    # ---- as other objects ------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the source and options, from which another process compiles for its GPU, or loads from the cache."""
        return Kernel, self._made_of

    def __copy__(self) -> Kernel:
        return self  # immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    # ---- for people ------------------------------------------------------------------------

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature for completions."""
        import inspect  # which takes a fifth of the time of importing all

        either, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [inspect.Parameter(a.name, either, annotation=str(a).partition(": ")[2]) for a in self.args if a.role != "out"]
            + [inspect.Parameter(name, by_name, default=None) for name in ("out", "stream")])

    def __str__(self) -> str:
        return str(self._signature)

    def __repr__(self) -> str:
        return f"<tcc.Kernel {self} for {self.target}>"


def on_environment() -> On | None:
    """What the environment says about where kernels run."""
    on: Any = os.environ.get("TCC_ON") or None
    if on and on not in _ON:
        raise ArgumentError(f"TCC_ON is '{on}', expected gpu or interp")
    return on  # type: ignore[no-any-return]


def _is_path(source: str) -> bool:
    """Whether a text is the path of a program, and not one itself."""
    return not set("{\n") & set(source) and (source.endswith((".tile", ".tir")) or os.path.isfile(source))


def jit(source: str | os.PathLike[str], *, kernel: str | None = None, defines: Mapping[str, int] | None = None,
        target: str | None = None, tiles: int = 0, on: On | None = None, interpret: bool = False,
        specialize: When = "never", assemble: When = "never") -> Kernel:
    """Compiles a kernel: a function of arrays.

    source     the text of a program, or the path of a file as a ``pathlib.Path``
    kernel     the name of its kernel; None: the only one
    defines    numbers for dimensions and constants, like ``-D`` on the command line
    target     "sm_90a", "gfx1100", …; "native": that of the GPU, which there must be; None: that of the GPU, or sm_90a
               without one
    tiles      the maximum number of tiles to compile, from which a launch chooses; 0: all
    on         "gpu": fail where there is no GPU for it; "interp": compute on the CPU, with a model of the GPU that
               detects races, even if there is a GPU; None: what the environment variable TCC_ON says, else on a GPU if
               there is one for it, with a warning at the first call if there is not
    interpret  the same as on="interp"
    specialize when to compile kernels for extents that the tiles do not serve well: "never", "at once", when a call
               first has them, or in the "background", while calls proceed without
    assemble   when to make machine code for later processes, if ptxas is found

    Code compiled for the GPU is cached on disk for later processes: docs/embedding.md.
    Raises CompileError if the program has errors.

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
    elif isinstance(source, str):
        if _is_path(source):
            raise ArgumentError(f"source is the text of a program, and '{source}' is a path: pass pathlib.Path('{source}')")
        text = source.encode()
    else:
        raise TypeError(f"source is the text of a program or a pathlib.Path, and got {type(source).__name__}")
    if not isinstance(tiles, int) or not 0 <= tiles < 2**32:
        raise ArgumentError(f"tiles= is {tiles!r}, expected a whole number, at least 0")
    for name, number in (defines or {}).items():
        if not isinstance(number, int) or not -(2**63) <= number < 2**63:
            raise ArgumentError(f"defines= has {number!r} for '{name}', expected a whole number of 64 bits")
    if on not in (None, *_ON):
        raise ArgumentError(f"on= is {on!r}, expected 'gpu' or 'interp'")
    if interpret and on == "gpu":
        raise ArgumentError("interpret=True and on='gpu' contradict each other")
    for when in (specialize, assemble):
        if when not in _gpu.WHEN:
            raise ArgumentError(f"'{when}' is none of " + ", ".join(f"'{w}'" for w in _gpu.WHEN))
    return Kernel(text, file, kernel, dict(defines or {}), target, tiles,
                  "interp" if interpret else on, (specialize, assemble))
