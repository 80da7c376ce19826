"""What a CTA does and when, measured on a GPU or by a model of the machine's speed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import ctypes as c
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _lib
from ._errors import ArgumentError
from ._lib import lib, text_of

if TYPE_CHECKING:
    from ._gpu import Gpus


class Timeline(NamedTuple):
    """What one CTA of a launch did: ``Kernel.timeline``. docs/timeline.md explains how to read it."""

    json: str
    """Chrome trace events, for ui.perfetto.dev."""
    summary: str
    """One line of summary."""

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events: those with "ph" = "X" last for "dur" cycles from "ts" on."""
        import json

        events: list[dict[str, Any]] = json.loads(self.json)["traceEvents"]
        return events

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.json)

    def __str__(self) -> str:
        return self.summary


class Texts:
    """Where the library puts a timeline's two texts."""

    def __init__(self) -> None:
        self._texts = (c.c_void_p * 2)()
        self.json = c.addressof(self._texts)
        self.summary = self.json + c.sizeof(c.c_void_p)

    def take(self) -> Timeline:
        timeline = Timeline(*(text_of(c.string_at(text or 0)) for text in self._texts))
        for text in self._texts:
            lib.tcc_text_destroy(text)
        return timeline


def measured(gpus: Gpus, ordinal: int, module: _lib.Module, name: str, call: tuple[bytes, int, bytes, int]) -> Timeline:
    """Launches a kernel of a module compiled for a timeline, on a GPU that is current, and reads what it recorded.

    call  extents, their number, arguments, their number, as C takes them
    """
    check, runtime, program, image = gpus.listener.check, gpus.runtime, c.c_void_p(), module.output
    check(lib.tcc_program_load(runtime, image, len(image), None, program))
    address = c.c_uint64()
    try:
        with gpus.on(ordinal) as device:
            kernel = lib.tcc_program_kernel(program, name.encode())
            size, variant = lib.tcc_kernel_workspace_bytes(kernel, *call), lib.tcc_kernel_variant(kernel, *call)
            if not variant or not size:
                raise ArgumentError(f"{name}: such a call launches nothing")
            check(lib.tcc_device_alloc(device, size, address))
            memory, texts = c.create_string_buffer(size), Texts()
            check(lib.tcc_device_sync(device))
            check(lib.tcc_kernel_launch_in(kernel, *call, None, _lib.Workspace(address.value, size)))
            check(lib.tcc_device_sync(device))
            check(lib.tcc_device_read(device, memory, address, size))
            lib.tcc_device_free(device, address)
            module.listener.check(lib.tcc_timeline_read(module.context, module.handle, variant, memory, size, None,
                                                        texts.json, texts.summary))
            return texts.take()
    finally:
        lib.tcc_program_destroy(program)
