"""libtcc through ctypes: its structs, its functions, and its errors as exceptions.

The library is the one in this package, as in a wheel; else the one named by TCC_LIBRARY; else the one that the loader
finds.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import ctypes as c
import os
import sys
import threading
from typing import Any, Callable

from ._errors import CompileError, Diagnostic, LibraryError
from ._signals import interruptible

INTERFACE = "0.1"  # the version of the symbols: docs/embedding.md

_SEVERITIES = ("note", "warning", "error")
_BAD_PROGRAM = {1, 2, 3, 4}  # TCC_ERR_SYNTAX to TCC_ERR_UNSUPPORTED
TARGET, INTERNAL, NO_DRIVER = 3, 6, 10  # other tcc_status

IN, OUT, INOUT, SCALAR = range(4)  # tcc_arg_role
DEFAULT, IR, TIR, _LLVM, _CUBIN, _MANIFEST, TILE, ASYNC, _ASM, _OBJ, _HSACO, _PTX, SASS = range(13)  # tcc_emit


class _Diagnostic(c.Structure):
    _fields_ = [("severity", c.c_int), ("file", c.c_char_p), ("line", c.c_uint), ("column", c.c_uint),
                ("message", c.c_char_p), ("source_line", c.c_char_p), ("text", c.c_char_p)]


class Define(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_int64)]


class CompileOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("target", c.c_char_p), ("file", c.c_char_p), ("emit", c.c_int),
                ("defines", c.POINTER(Define)), ("n_defines", c.c_size_t), ("print_after", c.c_char_p),
                ("verify_each", c.c_bool), ("time_passes", c.c_bool), ("ptxas", c.c_char_p),
                ("reproducer", c.c_char_p), ("print", c.c_void_p), ("print_user", c.c_void_p),
                ("check_passes", c.c_bool), ("check_seed", c.c_uint64), ("verify_pipeline", c.c_int),
                ("output_size", c.c_void_p), ("line_tables", c.c_int), ("tiles", c.c_uint), ("kernel", c.c_char_p),
                ("ranges", c.c_void_p), ("n_ranges", c.c_size_t), ("nvdisasm", c.c_char_p), ("timeline", c.c_bool),
                ("timeline_cta", c.c_int64)]


class InterpretOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("variant", c.c_char_p), ("order", c.c_int), ("seed", c.c_uint64),
                ("threads", c.c_uint), ("alignments", c.c_void_p), ("ran", c.c_void_p), ("timeline", c.c_void_p),
                ("summary", c.c_void_p), ("timeline_cta", c.c_int64), ("progress", c.c_void_p),
                ("progress_user", c.c_void_p)]


class Workspace(c.Structure):
    _fields_ = [("device", c.c_uint64), ("bytes", c.c_size_t)]


class JitOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("cache_dir", c.c_char_p), ("cache_bytes", c.c_uint64),
                ("specialize", c.c_int), ("assemble", c.c_int)]


class JitCounts(c.Structure):
    _fields_ = [(name, c.c_uint64) for name in ("compiled", "read", "damaged", "specialized", "assembled")]


class TuneProgress(c.Structure):
    _fields_ = [(name, c.c_size_t) for name in ("refused", "dear", "measured", "wrong", "known", "waiting")] + [
        (name, c.c_double) for name in ("best", "seconds_left")]


MEASURE_FN = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(c.c_double), c.c_void_p)
PROGRESS_FN = c.CFUNCTYPE(None, c.POINTER(TuneProgress), c.c_void_p)


class TuneOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("kernel", c.c_char_p), ("dims", c.c_void_p), ("n_dims", c.c_size_t),
                ("seconds", c.c_double), ("threads", c.c_uint), ("results", c.c_char_p), ("shard", c.c_uint),
                ("n_shards", c.c_uint), ("measure", MEASURE_FN), ("progress", PROGRESS_FN), ("user", c.c_void_p)]


class BenchEffort(c.Structure):
    _fields_ = [("round_ms", c.c_double), ("warm_ms", c.c_double), ("rounds", c.c_int)]


class BenchLaunch(c.Structure):
    _fields_ = [("kernel", c.c_void_p), ("dims", c.c_void_p), ("n_dims", c.c_size_t), ("args", c.c_void_p),
                ("n_args", c.c_size_t)]


ENQUEUE_FN = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int)
BENCH_ROUNDS = 11


class Contender(c.Structure):
    _fields_ = [("enqueue", ENQUEUE_FN), ("user", c.c_void_p), ("rounds", c.c_int), ("us", c.c_double * BENCH_ROUNDS)]


class ArgInfo(c.Structure):
    _fields_ = [("name", c.c_char_p), ("type", c.c_char_p), ("role", c.c_int), ("rank", c.c_uint),
                ("dims", c.POINTER(c.c_char_p)), ("extents", c.POINTER(c.c_int64)),
                ("indices", c.POINTER(c.c_char_p)), ("stride_dims", c.POINTER(c.c_char_p)),
                ("strides", c.POINTER(c.c_int64))]


DIAGNOSTIC_FN = c.CFUNCTYPE(None, c.POINTER(_Diagnostic), c.c_void_p)

_handle, _out = c.c_void_p, c.POINTER(c.c_void_p)
_array = c.c_void_p  # accepts arrays of any type, without a cast in each call

# name: (result, arguments); "status": a tcc_status
_FUNCTIONS = {
    "tcc_version": (c.c_char_p, []),
    "tcc_status_name": (c.c_char_p, [c.c_int]),
    "tcc_context_create": (_handle, []),
    "tcc_context_destroy": (None, [_handle]),
    "tcc_context_on_diagnostic": (None, [_handle, DIAGNOSTIC_FN, c.c_void_p]),
    "tcc_context_interrupt": (None, [_handle]),
    "tcc_target_name": (c.c_char_p, [c.c_size_t]),
    "tcc_compile_with": ("status", [_handle, c.c_char_p, c.c_size_t, c.POINTER(CompileOptions), _out]),
    "tcc_module_destroy": (None, [_handle]),
    "tcc_module_output": (_handle, [_handle, c.POINTER(c.c_size_t)]),
    "tcc_module_manifest": (c.c_char_p, [_handle]),
    "tcc_module_schedule": (c.c_char_p, [_handle]),
    "tcc_module_plan": (c.c_char_p, [_handle]),
    "tcc_text_destroy": (None, [_handle]),
    "tcc_timeline_read": ("status", [_handle, _handle, c.c_char_p, _array, c.c_size_t, c.c_char_p, _array, _array]),
    "tcc_interpret_elements": ("status", [_handle, _handle, c.c_char_p, _array, _array, _handle]),
    "tcc_runtime_create_for": ("status", [c.c_int, _out, DIAGNOSTIC_FN, c.c_void_p]),
    "tcc_runtime_current_device": (c.c_int, [_handle]),
    "tcc_device_open": ("status", [_handle, c.c_int, _out]),
    "tcc_device_close": (None, [_handle]),
    "tcc_device_alloc": ("status", [_handle, c.c_size_t, c.POINTER(c.c_uint64)]),
    "tcc_device_free": (None, [_handle, c.c_uint64]),
    "tcc_device_write": ("status", [_handle, c.c_uint64, _handle, c.c_size_t]),
    "tcc_device_read": ("status", [_handle, _handle, c.c_uint64, c.c_size_t]),
    "tcc_device_fill": ("status", [_handle, c.c_uint64, c.c_uint8, c.c_size_t]),
    "tcc_device_name": (c.c_char_p, [_handle]),
    "tcc_device_sync": ("status", [_handle]),
    "tcc_bench": ("status", [_handle, c.POINTER(BenchEffort), _array, c.c_size_t, c.c_int]),
    "tcc_bench_enqueue": ("status", [_handle, c.c_int]),
    "tcc_tune": ("status", [_handle, c.c_char_p, c.POINTER(CompileOptions), c.POINTER(TuneOptions), _out]),
    "tcc_tune_agree": (c.c_bool, [c.c_char_p, _array, _array, c.c_size_t]),
    "tcc_tuning_destroy": (None, [_handle]),
    "tcc_tuning_count": (c.c_size_t, [_handle]),
    "tcc_tuning_schedule": (c.c_char_p, [_handle, c.c_size_t]),
    "tcc_tuning_time": (c.c_double, [_handle, c.c_size_t]),
    "tcc_tuning_progress": (TuneProgress, [_handle]),
    "tcc_jit_create": ("status", [_handle, c.c_void_p, _out]),
    "tcc_jit_target": (c.c_char_p, [_handle]),
    "tcc_jit_kernel_for": ("status", [_handle, c.c_char_p, c.POINTER(CompileOptions), c.c_char_p, _array, c.c_size_t,
                                      _array, c.c_size_t, _out]),
    "tcc_jit_count": (JitCounts, [_handle]),
    "tcc_jit_wait": (None, [_handle]),
    "tcc_jit_end_background": (None, [_handle]),
    "tcc_jit_program": ("status", [_handle, c.c_char_p, c.POINTER(CompileOptions), _out]),
    "tcc_program_describe": ("status", [c.c_char_p, DIAGNOSTIC_FN, c.c_void_p, _out]),
    "tcc_program_load": ("status", [_handle, _array, c.c_size_t, c.c_char_p, _out]),
    "tcc_program_destroy": (None, [_handle]),
    "tcc_program_kernel_count": (c.c_size_t, [_handle]),
    "tcc_program_kernel": (_handle, [_handle, c.c_char_p]),
    "tcc_program_kernel_at": (_handle, [_handle, c.c_size_t]),
    "tcc_kernel_name": (c.c_char_p, [_handle]),
    "tcc_kernel_variant": (c.c_char_p, [_handle, _array, c.c_size_t, _array, c.c_size_t]),
    "tcc_kernel_flops": (c.c_double, [_handle, _array]),
    "tcc_kernel_dim_count": (c.c_size_t, [_handle]),
    "tcc_kernel_dim_name": (c.c_char_p, [_handle, c.c_size_t]),
    "tcc_kernel_solve": (c.c_bool, [_handle, _array, _array]),
    "tcc_kernel_arg_count": (c.c_size_t, [_handle]),
    "tcc_kernel_arg": (c.POINTER(ArgInfo), [_handle, c.c_size_t]),
    "tcc_kernel_prepare": ("status", [_handle, _array, c.c_size_t, _array, c.c_size_t]),
    "tcc_kernel_launch": ("status", [_handle, _array, c.c_size_t, _array, c.c_size_t, c.c_void_p]),
    "tcc_kernel_launch_in": ("status", [_handle, _array, c.c_size_t, _array, c.c_size_t, c.c_void_p, Workspace]),
    "tcc_kernel_workspace_bytes": (c.c_size_t, [_handle, _array, c.c_size_t, _array, c.c_size_t]),
}


def _load() -> c.CDLL:
    beside = os.path.join(os.path.dirname(__file__), "libtcc.so." + INTERFACE)
    name = beside if os.path.exists(beside) else os.environ.get("TCC_LIBRARY") or "libtcc.so." + INTERFACE
    library = c.CDLL(name)
    for function, (result, arguments) in _FUNCTIONS.items():
        f = getattr(library, function)
        f.argtypes = arguments
        f.restype = c.c_int if result == "status" else result
    return library


lib = _load()


class Listener(threading.local):
    """Collects the diagnostics sent to ``listen``, separately for each thread."""

    def __init__(self) -> None:
        self.heard: list[Diagnostic] = []

    def listen(self, diagnostic: c._Pointer[_Diagnostic], _: object) -> None:
        d = diagnostic.contents
        self.heard.append(Diagnostic(_SEVERITIES[d.severity], text_of(d.file), d.line, d.column,
                                     text_of(d.message), text_of(d.text)))

    def take(self) -> list[Diagnostic]:
        """What this thread's calls said."""
        heard, self.heard = self.heard, []
        return heard

    def run(self, interrupt: Callable[[], object], function: Callable[..., int], *args: Any) -> None:
        """Raises the error that a call returns, if any. Signals are handled while it runs: ``interruptible``."""
        status, self.heard = interruptible(lambda: (function(*args), self.take()), interrupt)
        self.check(status)

    def check(self, status: int) -> None:
        """Raises the error that a call on this thread returned, if any."""
        heard = self.take()
        if status:
            name = text_of(lib.tcc_status_name(status))
            kind = CompileError if status in _BAD_PROGRAM else LibraryError
            raise kind(name, tuple(d for d in heard if d.severity != "warning"))
        for d in heard:
            warn(d.text.rstrip("\n"))


def text_of(text: bytes) -> str:
    """A C string as str."""
    return text.decode("utf-8", "replace")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the line that called this package."""
    import warnings

    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__package__") == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def compile_options(target: str | None, file: str | None, kernel: str | None, defines: dict[str, int], tiles: int,
                    emit: int) -> CompileOptions:
    """Options for a compilation, which keep the objects that they point to."""
    pairs = (Define * len(defines))(*(Define(name.encode(), value) for name, value in defines.items()))
    return CompileOptions(struct_size=c.sizeof(CompileOptions), target=target.encode() if target else None,
                          file=file.encode("utf-8", "surrogateescape") if file else None, emit=emit,
                          defines=pairs, n_defines=len(defines), tiles=tiles, kernel=kernel.encode() if kernel else None)


class Module:
    """A compiled source: the requested output, and IR for the interpreter."""

    def __init__(self, source: bytes, options: CompileOptions):
        self.listener = Listener()
        self.callback = DIAGNOSTIC_FN(self.listener.listen)
        self.context = lib.tcc_context_create()
        self.handle = c.c_void_p()
        if not self.context:
            raise MemoryError
        lib.tcc_context_on_diagnostic(self.context, self.callback, None)
        self.listener.run(self.interrupt, self._compile, source, options)

    def _compile(self, source: bytes, options: CompileOptions) -> int:
        status: int = lib.tcc_compile_with(self.context, source, len(source), options, self.handle)
        return status

    def interrupt(self) -> None:
        """Makes a call that runs on it, and every later one, fail soon."""
        lib.tcc_context_interrupt(self.context)

    def interpret(self, kernel: str, extents: bytes, arguments: list[Any], options: Any) -> None:
        """Runs a kernel on the CPU. Arguments are scalars of C, and views, which live as long as it runs."""
        pointers = (c.c_void_p * len(arguments))(
            *(c.addressof(a) if isinstance(a, c.c_double) else a.address for a in arguments))
        self.listener.run(self.interrupt, self._interpret, kernel.encode(), extents, pointers, options, arguments)

    def _interpret(self, kernel: bytes, extents: bytes, pointers: Any, options: Any, _: object) -> int:
        status: int = lib.tcc_interpret_elements(self.context, self.handle, kernel, extents, pointers, options)
        return status

    def __del__(self) -> None:
        lib.tcc_module_destroy(self.handle)
        lib.tcc_context_destroy(self.context)

    @property
    def output(self) -> bytes:
        size = c.c_size_t()
        return c.string_at(lib.tcc_module_output(self.handle, size), size.value)

    @property
    def manifest(self) -> str:
        return text_of(lib.tcc_module_manifest(self.handle))

    @property
    def schedule(self) -> str:
        return text_of(lib.tcc_module_schedule(self.handle))

    @property
    def plan(self) -> str:
        return text_of(lib.tcc_module_plan(self.handle))


def targets() -> tuple[str, ...]:
    """The names of all targets.

    >>> "sm_90a" in targets() and "gfx1100" in targets()
    True
    """
    names: list[str] = []
    while name := lib.tcc_target_name(len(names)):
        names.append(text_of(name))
    return tuple(names)
