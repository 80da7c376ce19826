"""The extension, of which _quick.py makes use.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from typing import Any, Callable

Launches = tuple[int, bytes, bytes, tuple[tuple[tuple[Any, ...], dict[str, Any]], ...], Callable[[int], int],
                 Callable[[], bool], int, tuple[int, ...], object]

class Launcher:
    def __new__(cls, limits: bytes, is_written: bytes, n_inputs: int, tensor: type, check: Callable[[int], None],
                runtime: int, current_device: int, kernel_for: int, launch: int, /) -> Launcher: ...
    def __call__(self, args: tuple[Any, ...], out: Any, stream: int | None, /) -> Any: ...
    def learn(self, args: tuple[Any, ...], out: Any, plan: Launches, /) -> None: ...
    def seconds(self, args: tuple[Any, ...], out: Any, stream: int | None, times: int, /) -> float: ...
