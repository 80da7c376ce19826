"""Long calls of C, which signals' handlers can end: Ctrl-C, for example.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import atexit
import threading
from typing import Any, Callable, TypeVar

Result = TypeVar("Result")

PATIENCE = 0.1  # seconds that an interrupted call may take before it is left alone

_left: list[threading.Thread] = []
"""Threads in which interrupted calls may still run."""


def interruptible(call: Callable[[], Result], interrupt: Callable[[], object]) -> Result:
    """The result of a call that may take long and leaves the GIL alone.

    Python handles signals in the main thread, between its instructions: there the call runs in another thread, for whose
    end this one waits. What a handler raises, such as KeyboardInterrupt, is raised here, after ``interrupt``, which is to
    make the call end soon; the call may go on for a while, with all that it refers to.

    >>> interruptible(lambda: 3, print)
    3
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    results: list[Result] = []
    errors: list[BaseException] = []
    running = threading.Lock()

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            running.release()

    running.acquire()
    thread = threading.Thread(target=work, name="tcc", daemon=True)
    thread.start()
    try:
        running.acquire()
    except BaseException:
        interrupt()
        if not running.acquire(timeout=PATIENCE):
            _left.append(thread)
        raise
    if errors:
        raise errors[0]
    return results[0]


def _wait() -> None:
    """Before the process ends: C code that runs on while it does may crash."""
    for thread in _left:
        thread.join()


atexit.register(_wait)
