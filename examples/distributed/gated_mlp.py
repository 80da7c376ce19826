#!/usr/bin/env python3
"""A gated MLP on several GPUs: kernels by tcc, communication by torch.distributed.

    torchrun --standalone --nproc-per-node=2 examples/distributed/gated_mlp.py [--how tensor ddp fsdp] [--device cpu|cuda]

tensor  W1 and W3 are split by columns and W2 by rows; each process computes a part of the hidden features, and the
        results are added
ddp     each process has all weights and a part of the rows; gradients are averaged
fsdp    the same, with sharded weights that are gathered when they are needed

One training step is compared with that of a single process; prints a line for each tensor. The exit status is 1 if one
differs by more than rounding. On CPUs tcc's kernels are interpreted, which suits small sizes only, and gloo replaces
NCCL.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import os
import pathlib
import sys

import torch
import torch.distributed as dist

import tcc

SOURCE = pathlib.Path(__file__).with_name("gated_mlp.tile")
MOST_APART = 0.02  # relative to a tensor's norm: bf16 results that were added in a different order

# ---- operators with derivatives ------------------------------------------------------------------


def operator(name):
    return tcc.jit(SOURCE, kernel=name).torch_op(f"gated_mlp::{name}")


hidden, hidden_gates, hidden_input, hidden_weights = map(
    operator, ("hidden", "hidden_gates", "hidden_input", "hidden_weights"))
down, down_input, down_weights = map(operator, ("down", "down_input", "down_weights"))


def save_inputs(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def hidden_backward(ctx, d_a):
    x, w1, w3 = ctx.saved_tensors
    d_gate, d_up = hidden_gates(x, w1, w3, d_a.contiguous())
    return hidden_input(d_gate, d_up, w1, w3), *hidden_weights(x, d_gate, d_up)


def down_backward(ctx, d_y):
    a, w2 = ctx.saved_tensors
    d_y = d_y.to(torch.bfloat16).contiguous()
    return down_input(d_y, w2), down_weights(a, d_y)


hidden.register_autograd(hidden_backward, setup_context=save_inputs)
down.register_autograd(down_backward, setup_context=save_inputs)

# ---- between the processes -----------------------------------------------------------------------


def add_up(x):
    """The sum over all processes, added in f32, in the type of x."""
    total = x.float() if x.dtype != torch.float32 else x.clone()
    dist.all_reduce(total)
    return total.to(x.dtype)


class ToParts(torch.autograd.Function):
    """Passes on a value that all processes have; its derivatives are added over the processes."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, d_x):
        return add_up(d_x)


class FromParts(torch.autograd.Function):
    """Adds the results of the processes; the derivative is the same for each."""

    @staticmethod
    def forward(ctx, y):
        return add_up(y)

    @staticmethod
    def backward(ctx, d_y):
        return d_y


# ---- the modules ---------------------------------------------------------------------------------


class GatedMLP(torch.nn.Module):
    """Y = (silu(X * W1) * (X * W3)) * W2."""

    def __init__(self, w1, w3, w2):
        super().__init__()
        self.w1, self.w3, self.w2 = (torch.nn.Parameter(w.clone()) for w in (w1, w3, w2))

    def forward(self, x):
        return down(hidden(x, self.w1, self.w3), self.w2)


class TensorParallelGatedMLP(GatedMLP):
    """The part of this process."""

    def __init__(self, w1, w3, w2):
        n, rank = dist.get_world_size(), dist.get_rank()
        super().__init__(w1.chunk(n, 1)[rank].contiguous(), w3.chunk(n, 1)[rank].contiguous(), w2.chunk(n, 0)[rank])

    def forward(self, x):
        return FromParts.apply(super().forward(ToParts.apply(x)))


# ---- one step, in parallel and alone -------------------------------------------------------------


def step(module, x, target):
    """The result of a module and the derivative of its loss."""
    y = module(x)
    loss = ((y - target) ** 2).mean()
    loss.backward()
    return y.detach(), x.grad


def whole(gradient):
    """A derivative of FSDP, gathered from the parts of all processes."""
    return gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient


def tensor_parallel(weights, x, target):
    module = TensorParallelGatedMLP(*weights)
    y, d_x = step(module, x, target)
    n, rank = dist.get_world_size(), dist.get_rank()
    return {"Y": (y, lambda t: t), "dX": (d_x, lambda t: t),
            "dW1": (module.w1.grad, lambda t: t.chunk(n, 1)[rank]), "dW3": (module.w3.grad, lambda t: t.chunk(n, 1)[rank]),
            "dW2": (module.w2.grad, lambda t: t.chunk(n, 0)[rank])}


def data_parallel(wrap, weights, x, target):
    n, rank = dist.get_world_size(), dist.get_rank()
    module = GatedMLP(*weights)
    wrapped = wrap(module)
    part = x.detach().chunk(n, 0)[rank].clone().requires_grad_()
    y, _ = step(wrapped, part, target.chunk(n, 0)[rank])
    return {"Y": (y, lambda t: t.chunk(n, 0)[rank]),
            **{"d" + name.upper(): (whole(p.grad), lambda t: t) for name, p in module.named_parameters()}}


def ddp(*arguments):
    return data_parallel(torch.nn.parallel.DistributedDataParallel, *arguments)


def fsdp(*arguments):
    def shard(module):
        from torch.distributed.fsdp import fully_shard
        mesh = dist.device_mesh.init_device_mesh(arguments[1].device.type, (dist.get_world_size(),))
        return fully_shard(module, mesh=mesh)

    return data_parallel(shard, *arguments)


WAYS = {"tensor": tensor_parallel, "ddp": ddp, "fsdp": fsdp}


def compare(results, alone):
    """Whether the results of all processes equal those of one; the first process prints the differences."""
    fits = True
    for name, (got, part_of) in results.items():
        want = part_of(alone[name]).float()
        norms = torch.stack([(got.float() - want).square().sum(), want.square().sum()])
        dist.all_reduce(norms)
        error = (norms[0] / norms[1]).sqrt().item()
        fits &= error <= MOST_APART
        if dist.get_rank() == 0:
            print(f"{name:<4} {'x'.join(map(str, got.shape)):>12} of a process, differs by {error:.1e}")
    return fits


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--how", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", type=int, nargs=3, metavar=("M", "K", "H"), help="rows, features, hidden features")
    options = parser.parse_args()
    device = torch.device(options.device, int(os.environ["LOCAL_RANK"]) if options.device == "cuda" else None)
    if options.device == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo")
    m, k, h = options.size or ((16, 64, 128) if options.device == "cpu" else (4096, 4096, 14336))
    if m % dist.get_world_size() or h % dist.get_world_size():
        sys.exit(f"M and H must be multiples of the number of processes, {dist.get_world_size()}")

    generator = torch.Generator(device).manual_seed(1)  # the same in all processes
    random = lambda *shape: torch.randn(shape, generator=generator, device=device)  # noqa: E731
    weights = [(random(*shape) / shape[0] ** 0.5).bfloat16() for shape in ((k, h), (k, h), (h, k))]
    x, target = random(m, k).bfloat16(), random(m, k)

    module, alone_x = GatedMLP(*weights), x.clone().requires_grad_()
    y, d_x = step(module, alone_x, target)
    alone = {"Y": y, "dX": d_x, "dW1": module.w1.grad, "dW3": module.w3.grad, "dW2": module.w2.grad}
    failed = False
    for how in options.how:
        fits = compare(WAYS[how](weights, x.clone().requires_grad_(), target), alone)
        failed |= not fits
        if dist.get_rank() == 0:
            print(f"{how}: {dist.get_world_size()} processes give {'' if fits else 'NOT '}what one gives", flush=True)
    dist.destroy_process_group()
    return failed


if __name__ == "__main__":
    sys.exit(main())
