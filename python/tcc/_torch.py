"""Kernels as torch operators, as which torch.compile and torch.export trace their calls.

A call that is traced calls the kernel's operator instead of its Python code. The tracer of torch.compile reads this code
and runs none of it, but for ``_operator_of``, whose result it takes as a constant: there the operator is made.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
from __future__ import annotations

import hashlib
import itertools
import sys
import weakref
from typing import TYPE_CHECKING, Any, Mapping

from ._elements import ELEMENTS, PACKED
from ._errors import ArgumentError, Error
from ._extents import extent_of
from ._signature import WRITTEN

if TYPE_CHECKING:
    from ._kernel import Kernel
    from ._signature import Argument

_operators: dict[str, Any] = {}  # an operator can only be registered once per process

_numbers = itertools.count()
_traced: weakref.WeakValueDictionary[str, Kernel] = weakref.WeakValueDictionary()
"""Kernels by what stands for them in traced code: a text, since numbers may become symbols there."""


def key_of(kernel: Kernel) -> str:
    """What stands for a new kernel in traced code."""
    key = str(next(_numbers))
    _traced[key] = kernel
    return key


def is_tracing() -> bool:
    """Whether torch.compile reads this code."""
    try:
        return bool(sys.modules["torch"].compiler.is_dynamo_compiling())
    except (KeyError, AttributeError):  # there is no torch, or one without that
        return False


def is_traced() -> bool:
    """Whether a call is traced, by whatever part of torch."""
    try:
        return bool(sys.modules["torch"].compiler.is_compiling())
    except (KeyError, AttributeError):
        return False


def _operator_of(key: str, writes: bool) -> str:
    """The name of a kernel's operator, in ``torch.ops.tcc``."""
    return str(_make(_traced[key], None, writes)._qualname).partition("::")[2]


_operator_of._dynamo_marked_constant = True  # type: ignore[attr-defined]  # what torch._dynamo.assume_constant_result sets


def call(kernel: Kernel, args: tuple[Any, ...], out: Any, stream: Any, named: Mapping[str, Any]) -> Any:
    """A call that is traced."""
    torch = sys.modules["torch"]
    if stream is not None:
        raise ArgumentError(f"{kernel.name}: stream= cannot be traced: call it under torch.cuda.stream(…) instead")
    if named or len(args) != len(kernel._signature.inputs):
        args = kernel._signature.by_position(args, named)
    if torch.is_grad_enabled():
        for a, x in zip(kernel._signature.inputs, args):
            if a.role != "scalar" and x.requires_grad:
                raise ArgumentError(f"{kernel.name}: '{a.name}' requires a gradient, which kernels do not have: pass it "
                                    "detached, call it under torch.no_grad(), or give its torch_op() a derivative with "
                                    "register_autograd")
    operators = torch.ops.tcc
    if out is None:
        return getattr(operators, _operator_of(kernel._key, False)).default(*args)
    getattr(operators, _operator_of(kernel._key, True)).default(*args, *kernel._signature.outputs_of(out))
    return out


def _schema(kernel: Kernel, writes: bool) -> str:
    """The signature in torch's language: "(Tensor A, float alpha) -> Tensor"; writes: outputs are parameters, too."""
    inputs = [a for a in kernel.args if writes or a.role != "out"]
    outputs = ["Tensor"] * (len(kernel.args) - len(inputs))
    parameters = [
        f"Tensor(a{i}!) {a.name}" if a.role in WRITTEN else f"{'float' if a.role == 'scalar' else 'Tensor'} {a.name}"
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

    arrays = {i: x for i, (a, x) in enumerate(zip(kernel._signature.inputs, args)) if a.role != "scalar"}
    first = next(iter(arrays.values()))
    shapes = {i: _extents(kernel.args[i], x) for i, x in arrays.items()}
    dims: dict[Any, Any] = {}
    for i, shape in shapes.items():
        dims.update(zip(kernel.args[i].shape, shape))
    missing = [d for d in kernel.dims if d not in dims]
    if missing and all(isinstance(n, int) for shape in shapes.values() for n in shape):
        dims = kernel._signature.solve({}, {i: tuple(shape) for i, shape in shapes.items()})
    elif missing:
        raise ArgumentError(f"{kernel.name}: {missing[0]} is not a dimension of an argument by itself, and extents are "
                            "symbolic: compile with dynamic=False")
    outputs = tuple(first.new_empty([extent_of(d, dims) for d in a.shape],
                                    dtype=getattr(torch, ELEMENTS[a.type].dtype))
                    for a in kernel.args if a.role == "out")
    return outputs[0] if len(outputs) == 1 else outputs or None


def operator(kernel: Kernel, name: str | None) -> Any:
    """The kernel as a custom operator: ``Kernel.torch_op``."""
    return _make(kernel, name, False)


def _make(kernel: Kernel, name: str | None, writes: bool) -> Any:
    """The operator of a kernel, which is made the first time. writes: to outputs that it is given."""
    import torch

    if not hasattr(torch.library, "custom_op"):
        raise Error(f"operators require torch 2.4 or later, and this is {torch.__version__}: install a later one, or call "
                    "the kernel outside torch.compile")
    if name is None:
        digest = hashlib.sha256(repr(kernel.identity).encode()).hexdigest()
        name = f"tcc::{kernel.name}_{digest[:16]}" + "_out" * writes
        if name in _operators:
            return _operators[name]

    n = len(kernel._signature.inputs)

    def compute(*args: Any) -> Any:
        result = kernel(*args[:n], out=args[n:] or None)
        return None if writes else result

    mutated = [a.name for a in kernel.args if a.role == "inout" or writes and a.role == "out"]
    op = torch.library.custom_op(name, compute, mutates_args=mutated, schema=_schema(kernel, writes))
    op.register_fake(lambda *args: None if writes else _fake(kernel, args))
    return _operators.setdefault(name, op)
