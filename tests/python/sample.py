"""What a program does with the package, for a checker of types: nothing here is of type Any that need not be.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import pathlib
from typing import Callable

import tcc


def compile_all(source: str, path: pathlib.Path) -> list[tcc.Kernel]:
    return [tcc.jit(source), tcc.jit(path, kernel="f", defines={"N": 1}, target=tcc.targets()[0], tiles=1),
            tcc.jit(source, interpret=True, specialize="background", assemble="at once")]


def describe(k: tcc.Kernel) -> tuple[str, list[tuple[str, str, str, tuple[str | int, ...]]], tuple[str, ...]]:
    return k.name, [(a.name, a.type, a.role, a.shape) for a in k.args], k.dims


def texts(k: tcc.Kernel) -> list[str]:
    return [k.target, k.schedule, k.manifest, k.ptx, k.ir("tile"), k.code.hex(), str(k)]


def measure(k: tcc.Kernel, other: tcc.Kernel, call: Callable[[], object], array: object) -> float:
    bench: tcc.Bench = k.bench(array, against={"other": other, "call": call})
    first: tcc.Timing = bench.timings[0]
    timeline: tcc.Timeline = k.timeline(array, cta=1, path=pathlib.Path("t.json"))
    timeline.save("other.json")
    k.wait()
    return bench.us + bench.tflops + first.gbytes + bench.ratio("other") + len(timeline.summary + timeline.json)


def tune(k: tcc.Kernel, array: object) -> tuple[str, float, tcc.Kernel]:
    def tell(progress: tcc.TuneProgress) -> None:
        print(progress.measured + progress.known, progress.best / progress.seconds_left)

    tuned: tcc.Tuned = k.tune(array, seconds=5, results=pathlib.Path("tuned.jsonl"), progress=tell)
    assert tuned.progress.wrong == 0
    return tuned.schedule, tuned.us + tuned.before_us + tuned.ratio, k.tuned(array, results="") or tuned.kernel


def messages(source: str) -> list[tuple[str, str, int, int, str, str]]:
    try:
        tcc.jit(source)
    except tcc.CompileError as error:
        return [(d.severity, d.file, d.line, d.column, d.message, d.text) for d in error.diagnostics]
    except (tcc.ArgumentError, tcc.LibraryError, tcc.Error):
        pass
    return []


def wrong() -> None:
    tcc.jit("", specialize="now")  # type: ignore[arg-type]
    tcc.jit(3)  # type: ignore[arg-type]
