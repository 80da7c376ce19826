"""The GPUs of this machine, through libtcc's runtime.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import atexit
import contextlib
import ctypes as c
import functools
import sys
import threading
from typing import Any, Callable, Iterator, Tuple

from ._errors import ArgumentError
from ._lib import DIAGNOSTIC_FN, NO_DRIVER, CompileOptions, JitOptions, Listener, lib, text_of, warn

_VENDORS = (0, 1)  # NVIDIA, AMD

WHEN = {"never": 0, "at once": 1, "background": 2}  # tcc_jit_when
Policy = Tuple[str, str]
"""When kernels are specialized, and assembled."""


class Gpus:
    """All GPUs of a vendor."""

    def __init__(self, runtime: c.c_void_p, listener: Listener, callback: Any):
        self.runtime = runtime
        self.listener = listener
        self._callback = callback
        self._lock = threading.Lock()
        self._jits: dict[tuple[int, Policy], c.c_void_p] = {}
        self._kept: list[c.c_void_p] = []

    def current(self) -> int:
        """The ordinal of the current GPU; the first one if the calling thread has none."""
        now: int = lib.tcc_runtime_current_device(self.runtime)
        return max(now, 0)

    def enter(self, ordinal: int) -> c.c_void_p | None:
        """Makes a GPU current; pass the result to ``leave``. If none was current, it stays current."""
        now = lib.tcc_runtime_current_device(self.runtime)
        if now == ordinal:
            return None
        device = self.open(ordinal)
        if now >= 0:
            return device
        self._kept.append(device)
        return None

    def leave(self, device: c.c_void_p | None) -> None:
        if device is not None:
            lib.tcc_device_close(device)

    def open(self, ordinal: int) -> c.c_void_p:
        """The GPU as a device that allocates memory."""
        device = c.c_void_p()
        self.listener.check(lib.tcc_device_open(self.runtime, ordinal, device))
        return device

    @contextlib.contextmanager
    def on(self, ordinal: int) -> Iterator[c.c_void_p]:
        """The GPU as a device, which is made current."""
        device = self.open(ordinal)
        try:
            yield device
        finally:
            lib.tcc_device_close(device)

    def allocate(self, ordinal: int, size: int) -> int:
        """The address of new memory."""
        address = c.c_uint64()
        with self.on(ordinal) as device:
            self.listener.check(lib.tcc_device_alloc(device, size, address))
        return address.value

    def free(self, ordinal: int, address: int) -> None:
        with self.on(ordinal) as device:
            lib.tcc_device_free(device, address)

    def sync(self, ordinal: int) -> None:
        """Waits for all work enqueued on the GPU."""
        with self.on(ordinal) as device:
            self.listener.check(lib.tcc_device_sync(device))

    def jit(self, ordinal: int, policy: Policy = ("never", "never")) -> c.c_void_p:
        """The compiler for the current GPU."""
        with self._lock:
            if (ordinal, policy) not in self._jits:
                jit = c.c_void_p()
                specialize, assemble = (WHEN[when] for when in policy)
                options = JitOptions(struct_size=c.sizeof(JitOptions), specialize=specialize, assemble=assemble)
                self.listener.check(lib.tcc_jit_create(self.runtime, c.byref(options), jit))
                if "background" in policy:
                    atexit.register(lib.tcc_jit_end_background, jit)
                self._jits[ordinal, policy] = jit
            return self._jits[ordinal, policy]

    def program(self, ordinal: int, source: bytes, options: CompileOptions, policy: Policy) -> c.c_void_p:
        """A program loaded on a GPU."""
        program = c.c_void_p()
        entered = self.enter(ordinal)
        try:
            jit = self.jit(ordinal, policy)

            def load() -> int:
                with self.on(ordinal):  # in the thread that this runs in
                    status: int = lib.tcc_jit_program(jit, source, options, program)
                return status

            self.listener.run(lambda: None, load)
        finally:
            self.leave(entered)
        return program

    def wait(self, policy: Policy) -> None:
        """Waits until compilers with this policy have no background work left."""
        with self._lock:
            jits = [jit for (_, of), jit in self._jits.items() if of == policy]
        for jit in jits:
            lib.tcc_jit_wait(jit)

    def target(self, ordinal: int) -> str:
        entered = self.enter(ordinal)
        try:
            return text_of(lib.tcc_jit_target(self.jit(ordinal)))
        finally:
            self.leave(entered)


@functools.lru_cache(maxsize=None)
def _find() -> tuple[Gpus | None, str]:
    """NVIDIA's GPUs, else AMD's; or None, and why there are none."""
    reasons: list[str] = []
    for vendor in _VENDORS:
        listener, runtime = Listener(), c.c_void_p()
        callback = DIAGNOSTIC_FN(listener.listen)
        status = lib.tcc_runtime_create_for(vendor, runtime, callback, None)
        if not status:
            return Gpus(runtime, listener, callback), ""
        if status != NO_DRIVER:
            listener.check(status)
        reasons += [d.message for d in listener.take()]
    return None, "there is no GPU: " + "; ".join(reasons)


def gpus() -> Gpus | None:
    """NVIDIA's GPUs, else AMD's; None if there are none."""
    return _find()[0]


def why_none() -> str:
    """Why there are no GPUs; "" if there are."""
    return _find()[1]


_told: set[str] = set()


def warn_once(kernel: str, why: str) -> None:
    """Says why kernels are interpreted, unless that was asked for, once for each reason."""
    if why and why not in _told:
        _told.add(why)
        warn(f"{kernel} is computed by the interpreter, which is slow: {why}. on=\"interp\" or TCC_ON=interp accepts that, "
             "on=\"gpu\" or TCC_ON=gpu makes it an error", RuntimeWarning)


def stream_number(stream: Any) -> int:
    """torch's or cupy's stream as the driver knows it."""
    for name in ("cuda_stream", "ptr"):
        number = getattr(stream, name, None)
        if isinstance(number, int):
            return number
    raise ArgumentError(f"stream= is of type {type(stream).__name__}, expected a number, or a stream of torch or cupy")


def current_stream_of_torch() -> Callable[[int], int]:
    """What says on which stream torch works now, on a GPU."""
    of: Callable[[int], int] = sys.modules["torch"]._C._cuda_getCurrentRawStream
    return of


def current_stream(library: str, array: Any, ordinal: int) -> int:
    """The current stream of an array's library; 0, the default stream, if it has none."""
    if library == "torch":
        stream = current_stream_of_torch()(ordinal)
    elif library == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(ordinal):
            stream = cupy.cuda.get_current_stream().ptr
    else:
        interface = getattr(array, "__cuda_array_interface__", None)
        stream = (interface and interface.get("stream")) or 0
    return stream
