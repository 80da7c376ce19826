"""The schedule that makes a kernel fastest, by trying on the GPU: docs/tuning.md.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import contextlib
import ctypes as c
import math
import os
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple

from . import _lib
from ._bench import Sets, copies, gpus_for, median, ordinal_of, time_rounds
from ._elements import ELEMENTS
from ._errors import ArgumentError, Error, LibraryError
from ._lib import lib, text_of

if TYPE_CHECKING:
    from ._gpu import Gpus
    from ._kernel import Kernel
    from ._signature import Plan

ALL_TILES = 0
"""What schedules are measured against is the compiler's choice of all, whatever tiles the kernel was compiled with: so
that results in a file compare."""
FINALISTS = 3
"""So many are timed once more at the end: the first of many is often the luckiest."""
_BRIEF = _lib.BenchEffort(round_ms=3, warm_ms=10, rounds=5)
_POISON = 0xFF  # NaN


class TuneProgress(NamedTuple):
    """How far a search is: ``Kernel.tune``."""

    refused: int
    """Schedules that the compiler does not take."""
    dear: int
    """That by its estimate take too much time to be worth trying."""
    measured: int
    """In this search."""
    wrong: int
    """Of these, with wrong results."""
    known: int
    """Found in the file of results."""
    waiting: int
    """Still to be measured, as far as is known now."""
    best: float
    """The least time so far, over that of the compiler's own choice; infinite where there is none."""
    seconds_left: float


class Tuned(NamedTuple):
    """What ``Kernel.tune`` found.

    >>> tuned = Tuned("schedule p for sm_90a { … }", 8.0, 10.0, None, TuneProgress(9, 8, 7, 1, 5, 0, 0.8, 0.0))
    >>> tuned.ratio
    1.25
    >>> print(tuned)
    8.00 us, and 10.00 us before, ratio 1.250: of 7 schedules measured, 1 of them wrong, and 5 known
    schedule p for sm_90a { … }
    """

    schedule: str
    """In the language's syntax, to be put into the source."""
    us: float
    """Microseconds of one launch with it."""
    before_us: float
    """And of the kernel as it was, timed in turn."""
    kernel: Kernel
    """The kernel with the schedule."""
    progress: TuneProgress
    """How far the search came."""

    @property
    def ratio(self) -> float:
        """How many times as long the kernel took before."""
        return self.before_us / self.us

    def __str__(self) -> str:
        p = self.progress
        return (f"{self.us:.2f} us, and {self.before_us:.2f} us before, ratio {self.ratio:.3f}: of {p.measured} schedules "
                f"measured, {p.wrong} of them wrong, and {p.known} known\n{self.schedule}")


class _Trial:
    """What the search calls to have a schedule tried, and how an exception comes out of it."""

    def __init__(self, kernel: Kernel, sets: Sets, plan: Plan, own: c.c_void_p, progress: Any):
        self._sets, self._plan, self._own, self._progress = sets, plan, own, progress
        self.error: BaseException | None = None
        written = kernel._signature.written
        self._written = [(sets.words[0][i], sets.sizes[i] or 0, kernel.args[i].type.encode(),
                          ELEMENTS[kernel.args[i].type].bits) for i in written]
        self._initial = [sets.read(address, size) if kernel.args[i].role == "inout" else None
                         for i, (address, size, _, _) in zip(written, self._written)]
        self._expected = self._compute(own)

    def _compute(self, handle: c.c_void_p) -> list[Any]:
        """What a kernel makes of the first set: its outputs."""
        sets, plan = self._sets, self._plan
        for (address, size, _, _), initial in zip(self._written, self._initial):
            sets.check(lib.tcc_device_fill(sets.device, address, _POISON, size) if initial is None else
                       lib.tcc_device_write(sets.device, address, initial, size))
        sets.check(lib.tcc_kernel_launch(handle, plan.extents, plan.n_extents, sets.packed[0], len(sets.sizes), 0))
        sets.check(lib.tcc_device_sync(sets.device))
        return [sets.read(address, size) for address, size, _, _ in self._written]

    def _time(self, handle: c.c_void_p) -> float:
        """The time over that of the compiler's own choice, timed in turn; infinite where results are wrong."""
        got = self._compute(handle)
        if not all(lib.tcc_tune_agree(of, expected, now, size * 8 // bits)
                   for (_, size, of, bits), expected, now in zip(self._written, self._expected, got)):
            return math.inf
        own, other = time_rounds(self._sets, [(self._own, self._plan), (handle, self._plan)], _BRIEF)
        return median(other) / median(own)

    def measure(self, handle: int, time: Any, _: object) -> int:
        if self.error is None:
            try:
                time[0] = self._time(c.c_void_p(handle))
                return 0
            except LibraryError as error:  # the schedule's doing: it counts as wrong
                self.error = error
                return _lib.INTERNAL
            except BaseException as error:  # which C cannot pass on
                self.error = error
        time[0] = math.nan
        return _lib.INTERNAL

    def tell(self, progress: Any, _: object) -> None:
        if self._progress is not None and self.error is None:
            try:
                self._progress(_progress_of(progress.contents))
            except BaseException as error:
                self.error = error


def _progress_of(progress: Any) -> TuneProgress:
    return TuneProgress(*(getattr(progress, name) for name in TuneProgress._fields))


@contextlib.contextmanager
def _found(kernel: Kernel, gpus: Gpus, device: c.c_void_p, ordinal: int, plan: Plan, seconds: float, results: Any,
           trial: _Trial | None = None) -> Iterator[c.c_void_p]:
    """What a search found, which begins with what the file of results has, and is no more than that without a trial."""
    compile_options = kernel._options_on(ordinal, ALL_TILES)
    compile_options.kernel = None  # the search's options name it
    options = _lib.TuneOptions(
        struct_size=c.sizeof(_lib.TuneOptions), kernel=kernel.name.encode(),
        dims=c.cast(c.c_char_p(plan.extents), c.c_void_p), n_dims=plan.n_extents, seconds=seconds,
        results=None if results is None else os.fsencode(results))
    if trial:
        options.measure, options.progress = _lib.MEASURE_FN(trial.measure), _lib.PROGRESS_FN(trial.tell)
    found = c.c_void_p()
    status = lib.tcc_tune(device, kernel._source, compile_options, options, found)
    try:
        if trial and trial.error is not None:
            gpus.listener.heard = []
            raise trial.error
        gpus.listener.check(status)
        yield found
    finally:
        lib.tcc_tuning_destroy(found)


def tune(kernel: Kernel, args: tuple[Any, ...], out: Any, named: Mapping[str, Any], seconds: float, results: Any,
         progress: Callable[[TuneProgress], object] | None) -> Tuned:
    """``Kernel.tune``."""
    gpus = gpus_for(kernel, "tune")
    if not seconds > 0:
        raise ArgumentError(f"{kernel.name}: seconds= is {seconds}, wants more than 0")
    plan, values = kernel._signature.plan(args, out, named)
    with copies(gpus, plan, kernel._signature, values) as sets:
        own = kernel._handle(sets.ordinal, ALL_TILES)
        if not lib.tcc_kernel_variant(own, plan.extents, plan.n_extents, sets.packed[0], len(sets.sizes)):
            raise ArgumentError(f"{kernel.name}: there is nothing to compute with such arguments")
        trial = _Trial(kernel, sets, plan, own, progress)
        with _found(kernel, gpus, sets.device, sets.ordinal, plan, seconds, results, trial) as found:
            schedules = [text_of(lib.tcc_tuning_schedule(found, i))
                         for i in range(min(lib.tcc_tuning_count(found), FINALISTS))]
            how_far = _progress_of(lib.tcc_tuning_progress(found))
        if not schedules:
            raise Error(f"{kernel.name}: none of the schedules was measured in time with right results")
        finalists = [kernel._with(schedule) for schedule in schedules]
        before, *times = map(median, time_rounds(sets, [
            (k._launched(sets.ordinal, plan, sets.packed[0]), plan) for k in (kernel, *finalists)]))
    best = times.index(min(times))
    return Tuned(schedules[best], times[best], before, finalists[best], how_far)


def tuned(kernel: Kernel, args: tuple[Any, ...], out: Any, named: Mapping[str, Any], results: Any) -> Kernel:
    """``Kernel.tuned``."""
    gpus = kernel._gpus
    if gpus is None:
        return kernel  # nothing is known of the interpreter
    plan, _ = kernel._signature.look(args, out, named)
    ordinal = ordinal_of(gpus, plan)
    with gpus.on(ordinal) as device, _found(kernel, gpus, device, ordinal, plan, -1, results) as found:
        is_faster = lib.tcc_tuning_count(found) and lib.tcc_tuning_time(found, 0) < 1
        return kernel._with(text_of(lib.tcc_tuning_schedule(found, 0))) if is_faster else kernel
