"""Timing kernels on a GPU, alternately with whatever they are compared with.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import contextlib
import ctypes as c
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple, Sequence, Union

from . import _lib
from ._arrays import HOST
from ._errors import ArgumentError, Error
from ._lib import lib, text_of

if TYPE_CHECKING:
    from ._gpu import Gpus
    from ._kernel import Kernel
    from ._signature import Plan, Signature

Rival = Union["Kernel", Callable[[], object]]

ROTATION_BYTES, MAX_SETS = 256 << 20, 32
"""Runs rotate through copies of the arguments that together exceed a GPU's L2 cache."""


class Timing(NamedTuple):
    """The time of one contender."""

    name: str
    us: float
    """Microseconds of one run: the median over the rounds."""
    rounds: tuple[float, ...]
    """The microseconds of each round, sorted."""
    tflops: float
    """10^12 operations per second, counting those of the kernel; 0 if it has no sum."""
    gbytes: float
    """10^9 bytes per second, counting those of the kernel's arrays."""

    def __str__(self) -> str:
        return f"{self.name:<16} {self.us:10.2f} us  {self.tflops:8.1f} TFLOP/s  {self.gbytes:8.1f} GB/s"


class Bench(NamedTuple):
    """The result of ``Kernel.bench``.

    >>> own = Timing("product", 10.0, (9.0, 10.0, 11.0), 500.0, 0.0)
    >>> bench = Bench("a GPU", (own, own._replace(name="other", us=15.0)))
    >>> bench.us, bench.ratio("other")
    (10.0, 1.5)
    """

    device: str
    """The GPU's name."""
    timings: tuple[Timing, ...]
    """Of the kernel, then of the contenders."""

    @property
    def us(self) -> float:
        """Microseconds of one launch."""
        return self.timings[0].us

    @property
    def tflops(self) -> float:
        """10^12 operations per second."""
        return self.timings[0].tflops

    def ratio(self, name: str) -> float:
        """The time of a contender divided by that of the kernel."""
        for timing in self.timings[1:]:
            if timing.name == name:
                return timing.us / self.us
        raise KeyError(name)

    def __str__(self) -> str:
        first, *others = self.timings
        return "\n".join([f"{first}  on {self.device}"] +
                         [f"{t}  ratio {t.us / first.us:.3f}" for t in others])


class Sets:
    """Copies of a call's arguments on the current GPU."""

    def __init__(self, device: c.c_void_p, gpus: Gpus, ordinal: int, signature: Signature, values: list[Any]):
        self.device, self.gpus, self.ordinal = device, gpus, ordinal
        self.sizes = signature.sizes(values)
        self._addresses: list[int] = []
        total = sum(size or 0 for size in self.sizes)
        self.n = max(1, min(MAX_SETS, ROTATION_BYTES // (total + 1) + 1))
        self.words: list[list[Any]] = [[] for _ in range(self.n)]
        try:
            for size, value in zip(self.sizes, values):
                self._copy(size, value)
        except BaseException:
            self.free()
            raise
        self.packed = [signature.pack(words) for words in self.words]
        """The arguments of each copy, as C takes them."""

    def _copy(self, size: int | None, value: Any) -> None:
        """Copies one argument to all sets."""
        if size is None:
            for words in self.words:
                words.append(value)
            return
        memory: Any = value.address
        shift = 0
        if value.ordinal != HOST:
            shift = value.address % 256  # keeps its alignment, which decides the variant
            memory = self.read(value.address, size)
        for words in self.words:
            address = c.c_uint64()
            self.check(lib.tcc_device_alloc(self.device, size + shift, address))
            self._addresses.append(address.value)
            words.append(address.value + shift)
            self.check(lib.tcc_device_write(self.device, address.value + shift, memory, size))

    def check(self, status: int) -> None:
        self.gpus.listener.check(status)

    def read(self, address: int, size: int) -> Any:
        """The contents of GPU memory, as a C buffer."""
        memory = c.create_string_buffer(size)
        self.check(lib.tcc_device_read(self.device, memory, address, size))
        return memory

    def free(self) -> None:
        for address in self._addresses:
            lib.tcc_device_free(self.device, address)


def ordinal_of(gpus: Gpus, plan: Plan) -> int:
    """The GPU of a call: for host arrays the current one."""
    return gpus.current() if plan.ordinal == HOST else plan.ordinal


@contextlib.contextmanager
def copies(gpus: Gpus, plan: Plan, signature: Signature, values: list[Any]) -> Iterator[Sets]:
    """Copies of a call's arguments on its GPU, which is made current."""
    ordinal = ordinal_of(gpus, plan)
    with gpus.on(ordinal) as device:
        gpus.listener.check(lib.tcc_device_sync(device))  # other streams may still be using the arrays
        sets = Sets(device, gpus, ordinal, signature, values)
        try:
            yield sets
        finally:
            sets.free()


def gpus_for(kernel: Kernel, purpose: str) -> Gpus:
    """The GPUs that a kernel runs on; an Error if there are none."""
    if kernel._gpus is None:
        why = kernel._why_interpreted or "the kernel was asked to be interpreted"
        raise Error(f"{kernel.name}: {purpose} needs a GPU that runs {kernel.target}, and {why}")
    return kernel._gpus


class _Callable:
    """A contender that a Python function enqueues."""

    def __init__(self, function: Callable[[], object]):
        self._function = function
        self.error: BaseException | None = None
        self.callback = _lib.ENQUEUE_FN(self._enqueue)

    def _enqueue(self, _user: object, _set: int) -> int:
        try:
            self._function()
        except BaseException as error:  # C cannot propagate it
            self.error = error
            return _lib.INTERNAL
        return 0


def _rivals(against: Any) -> list[tuple[str, Rival]]:
    """The names and contenders in ``against``."""
    if against is None:
        return []
    if isinstance(against, Mapping):
        return list(against.items())
    return [(getattr(against, "__name__", None) or getattr(against, "name", None) or "other", against)]


def bench(kernel: Kernel, args: tuple[Any, ...], out: Any, named: Mapping[str, Any], against: Any) -> Bench:
    """``Kernel.bench``."""
    plan, values = kernel._signature.plan(args, out, named)
    gpus = gpus_for(kernel, "bench")
    contenders: list[tuple[str, tuple[Kernel, Plan] | Callable[[], object]]] = [(kernel.name, (kernel, plan))]
    for name, rival in _rivals(against):
        if callable(rival) and not isinstance(rival, type(kernel)):
            contenders.append((name, rival))
        elif isinstance(rival, type(kernel)) and rival._gpus is gpus and rival._signature.takes == kernel._signature.takes:
            contenders.append((name, (rival, rival._signature.plan(args, out, named)[0])))
        else:
            raise ArgumentError(f"{kernel.name}: '{name}' must be a kernel with the same arguments for the same GPU, "
                                "or a callable that enqueues work")
    with copies(gpus, plan, kernel._signature, values) as sets:
        runs = [contender if callable(contender) else (contender[0]._launched(sets.ordinal, contender[1], sets.packed[0]),
                                                       contender[1]) for _, contender in contenders]
        timed = time_rounds(sets, runs)
        flops = lib.tcc_kernel_flops(kernel._handle(sets.ordinal), plan.extents)
        moved = sum(size or 0 for size in sets.sizes)
        name = text_of(lib.tcc_device_name(sets.device))
    return Bench(name, tuple(
        Timing(n, median(r), r, flops / median(r) * 1e-6, moved / median(r) * 1e-3)
        for (n, _), r in zip(contenders, timed)))


def median(rounds: tuple[float, ...]) -> float:
    return rounds[len(rounds) // 2]


def time_rounds(sets: Sets, runs: Sequence[tuple[c.c_void_p, Plan] | Callable[[], object]],
                effort: _lib.BenchEffort | None = None) -> list[tuple[float, ...]]:
    """The sorted times of each contender's rounds."""
    rows = (_lib.Contender * len(runs))()
    words = b"".join(sets.packed)
    kept: list[Any] = []
    for row, run in zip(rows, runs):
        if isinstance(run, tuple):
            handle, plan = run
            kept.append(_lib.BenchLaunch(handle, c.cast(c.c_char_p(plan.extents), c.c_void_p), plan.n_extents,
                                         c.cast(c.c_char_p(words), c.c_void_p), len(sets.sizes)))
            row.enqueue, row.user = c.cast(lib.tcc_bench_enqueue, _lib.ENQUEUE_FN), c.addressof(kept[-1])
        else:
            kept.append(_Callable(run))
            row.enqueue = kept[-1].callback
    status = lib.tcc_bench(sets.device, effort, rows, len(rows), sets.n)
    for other in kept:
        if isinstance(other, _Callable) and other.error is not None:
            sets.gpus.listener.heard = []
            raise other.error
    sets.check(status)
    return [tuple(row.us[: row.rounds]) for row in rows]
