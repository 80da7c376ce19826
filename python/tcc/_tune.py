"""Searching for the fastest schedule of a kernel by measuring on the GPU: docs/tuning.md.

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
"""Schedules are measured against the compiler's choice among all tiles, whatever the kernel was compiled with, so that
results in a file are comparable."""
FINALISTS = 3
"""How many are timed again at the end: the fastest of many is often just the luckiest."""
_BRIEF = _lib.BenchEffort(round_ms=3, warm_ms=10, rounds=5)
_POISON = 0xFF  # NaN


class TuneProgress(NamedTuple):
    """The progress of a search: ``Kernel.tune``."""

    refused: int
    """Schedules that the compiler rejects."""
    dear: int
    """Schedules that are estimated to be too slow to be worth measuring."""
    measured: int
    """Schedules measured in this search."""
    wrong: int
    """Of these, schedules with wrong results."""
    known: int
    """Schedules found in the results file."""
    waiting: int
    """Schedules still to be measured, as far as known yet."""
    best: float
    """The shortest time so far, divided by that of the compiler's choice; infinite if there is none."""
    seconds_left: float


class Tuned(NamedTuple):
    """The result of ``Kernel.tune``.

    >>> tuned = Tuned("schedule p for sm_90a { … }", 8.0, 10.0, None, TuneProgress(9, 8, 7, 1, 5, 0, 0.8, 0.0))
    >>> tuned.ratio
    1.25
    >>> print(tuned)
    8.00 us, and 10.00 us before, ratio 1.250: of 7 schedules measured, 1 of them wrong, and 5 known
    schedule p for sm_90a { … }
    """

    schedule: str
    """In the language's syntax, to add to the source."""
    us: float
    """Microseconds of one launch with it."""
    before_us: float
    """And of the kernel before, timed alternately."""
    kernel: Kernel
    """The kernel with the schedule."""
    progress: TuneProgress
    """The final progress of the search."""

    @property
    def ratio(self) -> float:
        """The time before, divided by the time now."""
        return self.before_us / self.us

    def __str__(self) -> str:
        p = self.progress
        return (f"{self.us:.2f} us, and {self.before_us:.2f} us before, ratio {self.ratio:.3f}: of {p.measured} schedules "
                f"measured, {p.wrong} of them wrong, and {p.known} known\n{self.schedule}")


class _Trial:
    """The callbacks of the search, which measure a schedule and keep an exception for the caller."""

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
        """The outputs of a kernel on the first set."""
        sets, plan = self._sets, self._plan
        for (address, size, _, _), initial in zip(self._written, self._initial):
            sets.check(lib.tcc_device_fill(sets.device, address, _POISON, size) if initial is None else
                       lib.tcc_device_write(sets.device, address, initial, size))
        sets.check(lib.tcc_kernel_launch(handle, plan.extents, plan.n_extents, sets.packed[0], len(sets.sizes), 0))
        sets.check(lib.tcc_device_sync(sets.device))
        return [sets.read(address, size) for address, size, _, _ in self._written]

    def _time(self, handle: c.c_void_p) -> float:
        """The time divided by that of the compiler's choice, timed alternately; infinite if results are wrong."""
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
            except LibraryError as error:  # caused by the schedule, which counts as wrong
                self.error = error
                return _lib.INTERNAL
            except BaseException as error:  # C cannot propagate it
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
    """The results of a search, including those of the results file; without a trial only the latter."""
    compile_options = kernel._options_on(ordinal, ALL_TILES)
    compile_options.kernel = None  # it is named in the search's options
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
        raise ArgumentError(f"{kernel.name}: seconds= is {seconds}, must be more than 0")
    plan, values = kernel._signature.plan(args, out, named)
    with copies(gpus, plan, kernel._signature, values) as sets:
        own = kernel._handle(sets.ordinal, ALL_TILES)
        if not lib.tcc_kernel_variant(own, plan.extents, plan.n_extents, sets.packed[0], len(sets.sizes)):
            raise ArgumentError(f"{kernel.name}: nothing to compute with these arguments")
        trial = _Trial(kernel, sets, plan, own, progress)
        with _found(kernel, gpus, sets.device, sets.ordinal, plan, seconds, results, trial) as found:
            schedules = [text_of(lib.tcc_tuning_schedule(found, i))
                         for i in range(min(lib.tcc_tuning_count(found), FINALISTS))]
            how_far = _progress_of(lib.tcc_tuning_progress(found))
        if not schedules:
            raise Error(f"{kernel.name}: no schedule with correct results was measured in the given time")
        finalists = [kernel._with(schedule) for schedule in schedules]
        before, *times = map(median, time_rounds(sets, [
            (k._launched(sets.ordinal, plan, sets.packed[0]), plan) for k in (kernel, *finalists)]))
    best = times.index(min(times))
    return Tuned(schedules[best], times[best], before, finalists[best], how_far)


def tuned(kernel: Kernel, args: tuple[Any, ...], out: Any, named: Mapping[str, Any], results: Any) -> Kernel:
    """``Kernel.tuned``."""
    gpus = kernel._gpus
    if gpus is None:
        return kernel  # schedules are not timed on the interpreter
    plan, _ = kernel._signature.look(args, out, named)
    ordinal = ordinal_of(gpus, plan)
    with gpus.on(ordinal) as device, _found(kernel, gpus, device, ordinal, plan, -1, results) as found:
        is_faster = lib.tcc_tuning_count(found) and lib.tcc_tuning_time(found, 0) < 1
        return kernel._with(text_of(lib.tcc_tuning_schedule(found, 0))) if is_faster else kernel
