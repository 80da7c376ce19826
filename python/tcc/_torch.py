"""Kernels as torch operators, which torch.compile and torch.export trace as one.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ._elements import ELEMENTS, PACKED

if TYPE_CHECKING:
    from ._kernel import Kernel
    from ._signature import Argument

_operators: dict[str, Any] = {}  # an operator can only be registered once per process


def _schema(kernel: Kernel) -> str:
    """The signature in torch's language: "(Tensor A, float alpha) -> Tensor"."""
    inputs = [a for a in kernel.args if a.role != "out"]
    outputs = ["Tensor"] * (len(kernel.args) - len(inputs))
    parameters = [
        f"Tensor(a{i}!) {a.name}" if a.role == "inout" else f"{'float' if a.role == 'scalar' else 'Tensor'} {a.name}"
        for i, a in enumerate(inputs)]
    return f"({', '.join(parameters)}) -> " + (outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})")


def _extents(argument: Argument, tensor: Any) -> list[Any]:
    """The extents of a tensor in elements; they may be symbolic."""
    extents = list(tensor.shape)
    if extents and ELEMENTS[argument.type].bits < 8 and str(tensor.dtype) == f"torch.{PACKED}":
        extents[-1] = extents[-1] * 2
    return extents


def _fake(kernel: Kernel, args: tuple[Any, ...]) -> Any:
    """Outputs with only shapes and types."""
    import torch

    inputs = [a for a in kernel.args if a.role != "out"]
    bound: dict[Any, Any] = {}
    first: Any = None
    for a, x in zip(inputs, args):
        if a.role != "scalar":
            first = x if first is None else first
            bound.update(zip(a.shape, _extents(a, x)))
    outputs = tuple(first.new_empty([d if isinstance(d, int) else bound[d] for d in a.shape],
                                    dtype=getattr(torch, ELEMENTS[a.type].dtype))
                    for a in kernel.args if a.role == "out")
    return outputs[0] if len(outputs) == 1 else outputs or None


def operator(kernel: Kernel, name: str | None) -> Any:
    """The kernel as a custom operator: ``Kernel.torch_op``."""
    import torch

    if not hasattr(torch.library, "custom_op"):
        raise RuntimeError(f"operators require torch 2.4 or later, and this is {torch.__version__}")
    if name is None:
        digest = hashlib.sha256(repr(kernel.identity).encode()).hexdigest()
        name = f"tcc::{kernel.name}_{digest[:16]}"
        if name in _operators:
            return _operators[name]

    def compute(*args: Any) -> Any:
        return kernel(*args)

    mutated = [a.name for a in kernel.args if a.role == "inout"]
    op = torch.library.custom_op(name, compute, mutates_args=mutated, schema=_schema(kernel))
    op.register_fake(lambda *args: _fake(kernel, args))
    return _operators.setdefault(name, op)
