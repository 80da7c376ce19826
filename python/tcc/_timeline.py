"""What a CTA does and when, by a model of the machine's speed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import os
from typing import Any, NamedTuple


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
