"""Times the autograd overhead of a call of a native operator, forward and backward.

    python benchmarks/autograd_overhead.py [--rounds 1000] [--json FILE]

One tiny operator, the product of two float32 vectors of 8 elements, with one pair of native kernels, in four variants:
with opwright's bridge, with a Python `torch.autograd.Function`, with `torch.library.register_autograd`, and with a
hand-written `torch::autograd::Function` in C++, as in tutorials. PyTorch's own product is timed with them.
Times the forward call and `torch.autograd.grad` of both inputs, in the processor time of this thread, which runs all of
it. All rows are timed in turn, round after round. Prints the medians of the times and of the rounds' ratios.

Compares every gradient with PyTorch's own before timing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import opwright

CALLS = 50
WARM_UP = 5
# Each row has the same kernels in a new namespace, because an operator can have only one autograd kernel.
KERNELS = """
#include <opwright/empty.h>
#include <opwright/op.h>
using opwright::Tensor;
namespace {
Tensor product(const Tensor& x, const Tensor& y) {
    Tensor result = opwright::empty_like(x);
    const float* a = x.const_data_ptr<float>();
    const float* b = y.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    const int64_t count = x.numel();
    for (int64_t i = 0; i < count; ++i) into[i] = a[i] * b[i];
    return result;
}
std::tuple<Tensor, Tensor> gradients(const Tensor& grad, const Tensor& x, const Tensor& y,
                                     const std::vector<bool>& wanted) {
    return {wanted[0] ? product(grad, y) : Tensor(), wanted[1] ? product(grad, x) : Tensor()};
}
}
"""
DESCRIBED = """
import opwright
from torch import Tensor
library = opwright.Library("overhead_bridge", sources=["cpu.cpp"])
@library.op
def mul(x: Tensor, y: Tensor) -> Tensor:
    return x * y
mul.backward()
"""
IMPLEMENTED = """
OPWRIGHT_IMPL(overhead_bridge, CPU, m) {
    m.impl("mul", OPWRIGHT_FN(product));
    m.impl("mul_backward", OPWRIGHT_FN(gradients));
}
"""
DEFINED = """
OPWRIGHT_LIBRARY(%s, m) {
    m.def("mul(Tensor x, Tensor y) -> Tensor", OPWRIGHT_FN(product));
    m.def("mul_backward(Tensor grad, Tensor x, Tensor y, bool[] wanted) -> (Tensor, Tensor)", OPWRIGHT_FN(gradients));
}
"""
BY_HAND = """
#include <torch/torch.h>
namespace {
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
struct Mul : torch::autograd::Function<Mul> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& y) {
        static auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("overhead_by_hand::mul", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
        const at::AutoDispatchBelowADInplaceOrView guard;
        context->save_for_backward({x, y});
        return op.call(x, y);
    }
    static variable_list backward(AutogradContext* context, const variable_list& grads) {
        static auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("overhead_by_hand::mul_backward", "")
                             .typed<std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&,
                                                                       const at::Tensor&, c10::List<bool>)>();
        const variable_list saved = context->get_saved_variables();
        const c10::List<bool> wanted{context->needs_input_grad(0), context->needs_input_grad(1)};
        auto [of_x, of_y] = op.call(grads[0], saved[0], saved[1], wanted);
        return {of_x, of_y};
    }
};
at::Tensor mul(const at::Tensor& x, const at::Tensor& y) { return Mul::apply(x, y); }
}
TORCH_LIBRARY_IMPL(overhead_by_hand, Autograd, m) { m.impl("mul", &mul); }
"""


Product = Callable[[Tensor, Tensor], Any]


def bridge(folder: Path) -> Product:
    """The operator with a native backward that opwright's bridge calls."""
    (folder / "op.py").write_text(DESCRIBED)
    (folder / "cpu.cpp").write_text(KERNELS + IMPLEMENTED)
    opwright.open(folder)
    product: Product = torch.ops.overhead_bridge.mul.default
    return product


def defined(namespace: str) -> Any:
    """The two operators under `namespace`, without autograd."""
    opwright.load_inline(namespace, KERNELS + DEFINED % namespace)
    return getattr(torch.ops, namespace)


def python_function() -> Product:
    """A Python autograd.Function around the two operators."""
    ops = defined("overhead_function")
    forward_op, backward_op = ops.mul.default, ops.mul_backward.default

    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
            ctx.save_for_backward(x, y)
            return forward_op(x, y)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return backward_op(grad, *ctx.saved_tensors, list(ctx.needs_input_grad))

    return Mul.apply


def registered() -> Product:
    """torch.library.register_autograd around the two operators."""
    ops = defined("overhead_registered")
    backward_op = ops.mul_backward.default

    def setup(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, grad: Tensor) -> Any:
        return backward_op(grad, *ctx.saved_tensors, list(ctx.needs_input_grad))

    torch.library.register_autograd("overhead_registered::mul", backward, setup_context=setup)
    product: Product = ops.mul.default
    return product


def by_hand() -> Product:
    """Hand-written C++ autograd for these two operators."""
    ops = defined("overhead_by_hand")
    opwright.load_inline("overhead_by_hand_autograd", BY_HAND)
    product: Product = ops.mul.default
    return product


def gradients(mul: Product, x: Tensor, y: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
    """The timed call: forward and backward."""
    return torch.autograd.grad(mul(x, y), (x, y), grad)


def main() -> None:
    """Compare, time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000, help="number of rounds")
    parser.add_argument("--json", metavar="FILE", help="write all times as JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows: dict[str, Product] = {
            "opwright's bridge": bridge(Path(folder)),
            "torch.autograd.Function in Python": python_function(),
            "torch.library.register_autograd": registered(),
            "torch::autograd::Function by hand in C++": by_hand(),
            "torch.ops.aten.mul": torch.ops.aten.mul.Tensor,
        }
    x, y, grad = torch.randn(8, requires_grad=True), torch.randn(8, requires_grad=True), torch.randn(8)
    for name, mul in rows.items():
        if not all(map(torch.equal, gradients(mul, x, y, grad), (grad * y, grad * x))):
            sys.exit(f"{name}: the gradients are wrong, so the times are meaningless")
    times: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(WARM_UP + asked.rounds):
        for name, mul in rows.items():
            started = time.thread_time()
            for _ in range(CALLS):
                gradients(mul, x, y, grad)
            if number >= WARM_UP:
                times[name].append((time.thread_time() - started) / CALLS * 1e6)
    print(f"PyTorch {torch.__version__}: forward and backward of one product of 8 elements, {asked.rounds} rounds")
    ours = times["opwright's bridge"]
    for name, theirs in times.items():
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        print(f"{statistics.median(theirs):8.2f} µs  the bridge takes {ratio:.3f} of it  {name}")
    if asked.json:
        Path(asked.json).write_text(json.dumps(times, indent=2) + "\n")


if __name__ == "__main__":
    main()
