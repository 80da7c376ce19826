"""How long kernels take on a GPU, and what else computes the same.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Sequence, Union

from . import _lib
from ._arrays import HOST, View
from ._errors import ArgumentError, Error
from ._lib import lib, text_of

if TYPE_CHECKING:
    from ._gpu import Gpus
    from ._kernel import Kernel
    from ._signature import Plan

Rival = Union["Kernel", Callable[[], object]]

ROTATION_BYTES, MAX_SETS = 256 << 20, 32
"""Copies of the arguments are taken in rotation, so many that together they do not fit into a GPU's L2 cache."""


class Timing(NamedTuple):
    """How long one of those that were timed takes."""

    name: str
    us: float
    """Microseconds of one run: the median over the rounds."""
    rounds: tuple[float, ...]
    """Those of each round, sorted."""
    tflops: float
    """10^12 floating-point operations a second, as those of the kernel; 0 where it has no sum."""
    gbytes: float
    """10^9 bytes a second, of the kernel's arrays."""

    def __str__(self) -> str:
        return f"{self.name:<16} {self.us:10.2f} us  {self.tflops:8.1f} TFLOP/s  {self.gbytes:8.1f} GB/s"


class Bench(NamedTuple):
    """What ``Kernel.bench`` measured.

    >>> own = Timing("product", 10.0, (9.0, 10.0, 11.0), 500.0, 0.0)
    >>> bench = Bench("a GPU", (own, own._replace(name="other", us=15.0)))
    >>> bench.us, bench.ratio("other")
    (10.0, 1.5)
    """

    device: str
    """The GPU's name."""
    timings: tuple[Timing, ...]
    """Of the kernel, then of what it was timed against."""

    @property
    def us(self) -> float:
        """Microseconds of one launch."""
        return self.timings[0].us

    @property
    def tflops(self) -> float:
        """10^12 floating-point operations a second."""
        return self.timings[0].tflops

    def ratio(self, name: str) -> float:
        """How many times as long another one takes."""
        for timing in self.timings[1:]:
            if timing.name == name:
                return timing.us / self.us
        raise KeyError(name)

    def __str__(self) -> str:
        first, *others = self.timings
        return "\n".join([f"{first}  on {self.device}"] +
                         [f"{t}  ratio {t.us / first.us:.3f}" for t in others])


class _Sets:
    """Copies of a call's arguments on a GPU, which is current."""

    def __init__(self, device: c.c_void_p, gpus: Gpus, sizes: list[int | None], values: list[Any]):
        self._device, self._check = device, gpus.listener.check
        self._addresses: list[int] = []
        total = sum(size or 0 for size in sizes)
        self.n = max(1, min(MAX_SETS, ROTATION_BYTES // (total + 1) + 1))
        self.words: list[list[Any]] = [[] for _ in range(self.n)]
        try:
            for size, value in zip(sizes, values):
                self._copy(size, value)
        except BaseException:
            self.free()
            raise

    def _copy(self, size: int | None, value: Any) -> None:
        """One argument, into all sets."""
        if size is None:
            for words in self.words:
                words.append(value)
            return
        view = View._make(value)
        memory: Any = view.address
        shift = 0
        if view.ordinal != HOST:
            memory = c.create_string_buffer(size)
            shift = view.address % 256  # what its alignment allows counts
            self._check(lib.tcc_device_read(self._device, memory, view.address, size))
        for words in self.words:
            address = c.c_uint64()
            self._check(lib.tcc_device_alloc(self._device, size + shift, address))
            self._addresses.append(address.value)
            words.append(address.value + shift)
            self._check(lib.tcc_device_write(self._device, address.value + shift, memory, size))

    def free(self) -> None:
        for address in self._addresses:
            lib.tcc_device_free(self._device, address)


class _Callable:
    """A contender that Python enqueues."""

    def __init__(self, function: Callable[[], object]):
        self._function = function
        self.error: BaseException | None = None
        self.callback = _lib.ENQUEUE_FN(self._enqueue)

    def _enqueue(self, _user: object, _set: int) -> int:
        try:
            self._function()
        except BaseException as error:  # which C cannot pass on
            self.error = error
            return _lib.INTERNAL
        return 0


def _rivals(against: Any) -> list[tuple[str, Rival]]:
    """What a kernel is timed against, and its names."""
    if against is None:
        return []
    if isinstance(against, Mapping):
        return list(against.items())
    return [(getattr(against, "__name__", None) or getattr(against, "name", None) or "other", against)]


def bench(kernel: Kernel, args: tuple[Any, ...], out: Any, named: Mapping[str, Any], against: Any) -> Bench:
    """``Kernel.bench``."""
    plan, values = kernel._signature.plan(args, out, named)
    gpus = kernel._gpus
    if gpus is None:
        raise Error(f"{kernel.name}: bench needs a GPU that runs {kernel.target}: the interpreter's time means nothing")
    contenders: list[tuple[str, tuple[Kernel, Plan] | Callable[[], object]]] = [(kernel.name, (kernel, plan))]
    for name, rival in _rivals(against):
        if callable(rival) and not isinstance(rival, type(kernel)):
            contenders.append((name, rival))
        elif isinstance(rival, type(kernel)) and rival._gpus is gpus and rival._signature.takes == kernel._signature.takes:
            contenders.append((name, (rival, rival._signature.plan(args, out, named)[0])))
        else:
            raise ArgumentError(f"{kernel.name}: '{name}' is to be a kernel with the same arguments, for the same GPU, "
                                "or what enqueues something when it is called")
    ordinal = gpus.current() if plan.ordinal == HOST else plan.ordinal
    device = gpus.open(ordinal)
    try:
        gpus.listener.check(lib.tcc_device_sync(device))  # other streams may be at work on the arrays
        sizes = kernel._signature.sizes(values)
        sets = _Sets(device, gpus, sizes, values)
        try:
            timed = _time(gpus, device, ordinal, contenders, sets)
        finally:
            sets.free()
        flops = lib.tcc_kernel_flops(kernel._handle(ordinal), plan.extents)
        moved = sum(size or 0 for size in sizes)
        name = text_of(lib.tcc_device_name(device))
    finally:
        lib.tcc_device_close(device)
    return Bench(name, tuple(
        Timing(n, r[len(r) // 2], r, flops / r[len(r) // 2] * 1e-6, moved / r[len(r) // 2] * 1e-3)
        for n, r in timed))


def _time(gpus: Gpus, device: c.c_void_p, ordinal: int, contenders: Sequence[tuple[str, Any]],
          sets: _Sets) -> list[tuple[str, tuple[float, ...]]]:
    """The times of each contender's rounds."""
    rows = (_lib.Contender * len(contenders))()
    kept: list[Any] = []
    for row, (_, contender) in zip(rows, contenders):
        if isinstance(contender, tuple):
            kernel, plan = contender
            packed = [kernel._signature.pack(*w) for w in sets.words]
            words = b"".join(packed)
            launch = _lib.BenchLaunch(kernel._launched(ordinal, plan, packed[0]), c.cast(c.c_char_p(plan.extents), c.c_void_p),
                                      len(kernel.dims), c.cast(c.c_char_p(words), c.c_void_p), len(kernel.args))
            kept += [launch, words, plan]
            row.enqueue, row.user = c.cast(lib.tcc_bench_enqueue, _lib.ENQUEUE_FN), c.addressof(launch)
        else:
            kept.append(_Callable(contender))
            row.enqueue = kept[-1].callback
    status = lib.tcc_bench(device, None, rows, len(rows), sets.n)
    for other in kept:
        if isinstance(other, _Callable) and other.error is not None:
            gpus.listener.heard = []
            raise other.error
    gpus.listener.check(status)
    return [(name, tuple(row.us[: row.rounds])) for (name, _), row in zip(contenders, rows)]
