"""What an operator of an external library lacks for a runtime: a gradient, or a fake kernel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import UnsupportedOperatorException
from torch.utils import _pytree as pytree

from opwright.checker.behavior.unbacked import fake_mode
from opwright.checker.runtime_table import runtime_row
from opwright.loader.kernels import has_fake_kernel, has_kernel

if TYPE_CHECKING:
    from opwright.checker.subject import Subject

# The errors that PyTorch raises if native code reads the memory of a tensor that has none, and in place of the fake
# kernel of a torch.library.custom_op.
_HAS_NO_FAKE_KERNEL = re.compile(
    r"data pointer|data_ptr|doesn't have storage|does not have storage|data is not allocated yet"
    r"|Cannot call \w+\(\) on tensor with symbolic|There was no fake impl registered"
)


def lack(subject: Subject, runtime: str) -> str:
    """Return what the operator lacks to run in `runtime` and how to add it; empty if it lacks nothing.

    Only operators of external libraries can lack something: opwright registers both for its own.
    """
    if not subject.is_external:
        return ""
    if not has_kernel(subject.op.qualified_name, subject.device):
        return f"no kernel for {subject.device}: check it on another device, with --device"
    if runtime == "autograd" and not subject.has_gradient_kernel:
        return (
            "no gradient: nothing is registered for autograd. Register it with torch.library.register_autograd, or "
            "declare in op.py that there is none: differentiable=()"
        )
    if runtime_row(runtime).needs_fake and not runs_on_fake_tensors(subject):
        return "no fake kernel, which computes shapes without data: register it with torch.library.register_fake"
    return ""


def runs_on_fake_tensors(subject: Subject) -> bool:
    """Return whether the first sample returns a result, or fails for another reason than a missing fake kernel."""
    if not subject.is_external:
        return True
    if not has_fake_kernel(subject.op):
        return False
    mode = fake_mode()
    arguments = pytree.tree_map_only(Tensor, mode.from_tensor, subject.samples[0].fresh())
    try:
        with mode, torch.no_grad():
            subject.call(arguments)
    except UnsupportedOperatorException:
        return False
    except Exception as error:
        # A kernel for all devices that reads memory directly instead of calling other operators.
        return _HAS_NO_FAKE_KERNEL.search(str(error)) is None
    return True
