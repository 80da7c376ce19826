"""Kernels called with torch's tensors, and as its operators.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import unittest
import warnings

import torch
import torch.masked

import tcc

LAYER = """
kernel layer(A: bf16[M, K], B: bf16[K, N], bias: f32[N], alpha: f32) -> (C: f32[M, N])
{
    C[m, n] = alpha * sum(k) A[m, k] * B[k, n] + bias[n];
}
"""
UPDATE = """
kernel update(A: f32[M, N], inout U: f32[M, N]) -> (B: f16[M, N], C: f32[N, M])
{
    B[m, n] = A[m, n];
    C[n, m] = U[m, n];
    U[m, n] = U[m, n] + A[m, n];
}
"""


def numbers(*shape, dtype=torch.float32):
    return torch.randint(-4, 5, shape).to(dtype)


class Tensors(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.arguments = numbers(5, 16, dtype=torch.bfloat16), numbers(16, 7, dtype=torch.bfloat16), numbers(7), 0.5
        a, b, bias, alpha = self.arguments
        self.expected = alpha * (a.float() @ b.float()) + bias
        self.layer = tcc.jit(LAYER, tiles=1)

    def test_computes(self):
        c = self.layer(*self.arguments)
        self.assertIs(type(c), torch.Tensor)
        torch.testing.assert_close(c, self.expected, rtol=0, atol=0)
        out = torch.full_like(c, torch.nan)
        self.assertIs(self.layer(*self.arguments, out=out), out)
        torch.testing.assert_close(out, self.expected, rtol=0, atol=0)

    def test_refuses(self):
        a, b, bias, alpha = self.arguments
        for x, message in ((a.float(), "has dtype float32, expected bfloat16 for bf16"),
                           (a.T.contiguous().T, r"is not contiguous: its shape is \(5, 16\), its strides \(1, 5\)"),
                           (a.clone().requires_grad_(), "requires a gradient"),
                           (a.to("meta"), "is on the device 'meta'")):
            with self.assertRaisesRegex(tcc.ArgumentError, f"layer: 'A' {message}"):
                self.layer(x, b, bias, alpha)
        with torch.no_grad():
            self.layer(a.clone().requires_grad_(), b, bias, alpha)

    def test_tensors_that_are_not_what_their_memory_says(self):
        a, b, bias, alpha = self.arguments
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            odd = ((torch._neg_view(a), r"is negated lazily: .* pass its resolve_neg\(\)"),
                   (torch.complex(a.float(), a.float()).conj().imag, "is negated lazily"),
                   (torch._efficientzerotensor(a.shape, dtype=a.dtype), "is a Tensor without memory of its own"),
                   (torch.masked.masked_tensor(a.float(), a > 0), "is a MaskedTensor without memory of its own"),
                   (a.to_sparse(), "is not dense: its layout is torch.sparse_coo"),
                   (a.to_sparse_csr(), "is not dense: its layout is torch.sparse_csr"),
                   (torch.nested.nested_tensor([a, a]), "is not dense: it is nested"),
                   (torch.nested.nested_tensor([a, a], layout=torch.jagged), "is not dense: it is nested"))
        for x, message in odd:
            with self.assertRaisesRegex(tcc.ArgumentError, f"layer: 'A' {message}"):
                self.layer(x, b, bias, alpha)
        c = self.layer(torch._neg_view(a).resolve_neg(), b, bias, alpha)
        torch.testing.assert_close(c, 2 * bias - self.expected, rtol=0, atol=0)
        with self.assertRaisesRegex(tcc.ArgumentError, "layer: 'C' is negated lazily"):
            self.layer(*self.arguments, out=torch._neg_view(self.expected))

    def test_is_an_operator(self):
        op = self.layer.torch_op()
        self.assertIs(self.layer.torch_op(), op)
        self.assertIs(tcc.jit(LAYER, tiles=1).torch_op(), op)
        self.assertIsNot(tcc.jit(LAYER, tiles=2).torch_op(), op)
        torch.testing.assert_close(op(*self.arguments), self.expected, rtol=0, atol=0)
        torch.library.opcheck(op, self.arguments)

    def test_operators_write(self):
        op = tcc.jit(UPDATE).torch_op("tcc_test::update")
        a, u = numbers(3, 4), numbers(3, 4)
        before = u.clone()
        b, c = op(a, u)
        torch.testing.assert_close(b, a.half())
        torch.testing.assert_close(c, before.T)
        torch.testing.assert_close(u, before + a)
        torch.library.opcheck(op, (a, u))

    def test_calls_are_traced(self):
        a, b, bias, _ = self.arguments
        layer, update = tcc.jit(LAYER, tiles=1), tcc.jit(UPDATE)

        def plain(a, b, bias):
            return torch.relu(layer(a * 1, b, bias, 0.5)) + 1

        def named(a, b, bias):
            return torch.relu(layer(a, bias=bias, alpha=0.5, B=b)) + 1

        def into(a, b, bias):
            out = torch.empty(a.shape[0], 7)
            assert layer(a, b, bias, 0.5, out=out) is out
            return torch.relu(out) + 1

        def into_named(a, b, bias):
            out = torch.empty(a.shape[0], 7)
            layer(a, b, bias, 0.5, out={"C": out})
            return torch.relu(out) + 1

        for call in plain, named, into, into_named:
            model = torch.compile(call, backend="aot_eager", fullgraph=True, dynamic=True)
            for rows in 5, 3:
                torch.testing.assert_close(model(a[:rows], b, bias), torch.relu(self.expected[:rows]) + 1)

        @torch.compile(backend="aot_eager", fullgraph=True)
        def writes(x, u):
            u = u + 1
            first, second = update(x, u)
            return first, second, u

        x, u = numbers(3, 4), numbers(3, 4)
        for got, expected in zip(writes(x, u), (x.half(), (u + 1).T, u + 1 + x)):
            torch.testing.assert_close(got, expected)

    def test_calls_are_exported(self):
        layer = self.layer

        class Model(torch.nn.Module):
            def forward(self, a, b, bias):
                return layer(a, b, bias, 0.5) + 1

        for strict in True, False:
            model = torch.export.export(Model(), self.arguments[:3], strict=strict).module()
            torch.testing.assert_close(model(*self.arguments[:3]), self.expected + 1)

    def test_calls_that_cannot_be_traced_name_the_remedy(self):
        a, b, bias, _ = self.arguments
        for call, message in ((lambda: self.layer(a, b, bias.requires_grad_(), 0.5), "'bias' requires a gradient, .*no_grad"),
                              (lambda: self.layer(a, b, bias, 0.5, stream=3), "stream= cannot be traced: .*cuda.stream"),
                              (lambda: self.layer(a, b), "layer lacks 'bias', 'alpha': layer"),
                              (lambda: self.layer(a, b, bias, x=0.5), "layer has no parameter 'x': layer")):
            with self.assertRaisesRegex(Exception, f"(?s){message}"):
                torch.compile(call, backend="aot_eager", fullgraph=True)()
            bias.requires_grad_(False)
        for x, message in (a.float(), "'A' has dtype float32, expected bfloat16"), (a[:, :9].clone(), "dimension 0 of 'B'"):
            with self.assertRaisesRegex(tcc.ArgumentError, message):
                torch.compile(lambda x: self.layer(x, b, bias, 0.5), backend="aot_eager", fullgraph=True)(x)

    def test_is_traced(self):
        op = self.layer.torch_op()

        @torch.compile(backend="aot_eager", fullgraph=True, dynamic=True)
        def model(a, b, bias):
            return torch.relu(op(a * 1, b, bias, 0.5)) + 1

        a, b, bias, _ = self.arguments
        torch.testing.assert_close(model(a, b, bias), torch.relu(self.expected) + 1)
        torch.testing.assert_close(model(a[:3], b, bias), torch.relu(self.expected[:3]) + 1)


if __name__ == "__main__":
    unittest.main()
