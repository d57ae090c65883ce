from __future__ import annotations

import torch

from opwright.probe.gradients import gradients, ramp


def test_the_ramp_has_the_shape_of_the_output_and_distinct_values() -> None:
    output = torch.zeros(4, 3, dtype=torch.float64).t()
    values = ramp(output)
    assert (values.shape, values.dtype) == (output.shape, output.dtype)
    assert values.unique().numel() == 12
    assert [values.min().item(), values.max().item()] == [0.5, 1.5]


def test_the_gradients_are_those_of_the_documented_loss() -> None:
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    y = torch.randn(4, dtype=torch.float64, requires_grad=True)
    outputs = (x * y, [(x.sin() @ y).reshape(3, 1)], x.argmax())
    loss = (outputs[0] * ramp(outputs[0])).sum() + (outputs[1][0] * ramp(outputs[1][0])).sum()
    expected = torch.autograd.grad(loss, [x, y], retain_graph=True)
    found = gradients(outputs, (x, 2.0, [y]))
    for gradient, wanted in zip(found, expected, strict=True):
        assert gradient is not None
        torch.testing.assert_close(gradient, wanted)


def test_an_argument_that_no_output_depends_on_has_no_gradient() -> None:
    x, unused = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    found = gradients(x * 2, (x, unused, torch.ones(2)))
    assert found[0] is not None
    assert found[1:] == [None]


def test_outputs_without_a_gradient_return_none_for_each_argument() -> None:
    x = torch.ones(2, requires_grad=True)
    assert gradients(x.detach(), (x,)) == [None]
    assert gradients(None, (x,)) == [None]
    assert gradients(torch.ones(2), (torch.ones(2),)) == []
