"""Operators with correct results, each of which misbehaves in one way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

library = opwright.Library("misbehaving", sources=["cpu.cpp"])


@library.op(differentiable=())
def right(x: Tensor) -> Tensor:
    """2 x + 1, for a contiguous float32 tensor, like all operators here; the kernel does nothing else."""
    return 2 * x + 1


@library.op(differentiable=())
def flushes_denormals(x: Tensor) -> Tensor:
    """2 x + 1; the kernel makes the processor flush denormals to zero from then on."""
    return 2 * x + 1


@library.op(differentiable=())
def rounds_upward(x: Tensor) -> Tensor:
    """2 x + 1; the kernel sets the rounding mode."""
    return 2 * x + 1


@library.op(differentiable=())
def ignores_a_signal(x: Tensor) -> Tensor:
    """2 x + 1; the kernel changes the action for SIGUSR1."""
    return 2 * x + 1


@library.op(differentiable=())
def sets_a_variable(x: Tensor) -> Tensor:
    """2 x + 1; the kernel sets an environment variable."""
    return 2 * x + 1


@library.op(differentiable=())
def changes_the_folder(x: Tensor) -> Tensor:
    """2 x + 1; the kernel changes the working directory."""
    return 2 * x + 1


@library.op(differentiable=())
def prints(x: Tensor) -> Tensor:
    """2 x + 1; the kernel prints to standard output."""
    return 2 * x + 1


@library.op(differentiable=())
def leaves_a_file_open(x: Tensor) -> Tensor:
    """2 x + 1; the kernel opens a file and never closes it."""
    return 2 * x + 1


@library.op(differentiable=())
def leaves_a_thread(x: Tensor) -> Tensor:
    """2 x + 1; each call starts a thread that it does not wait for."""
    return 2 * x + 1


@library.op(differentiable=())
def restores_its_argument(x: Tensor) -> Tensor:
    """2 x + 1; the kernel overwrites each element of x and restores it."""
    return 2 * x + 1


@library.op(differentiable=())
def reads_past_the_end(x: Tensor) -> Tensor:
    """2 x + 1; the kernel reads one element past the end of x."""
    return 2 * x + 1


@library.op(differentiable=())
def writes_later(x: Tensor) -> Tensor:
    """2 x + 1; a thread writes to the result after the call has returned."""
    return 2 * x + 1


@library.op(differentiable=())
def remembers_addresses(x: Tensor) -> Tensor:
    """2 x + 1; the kernel returns an earlier result if 16 elements at the same address are unchanged."""
    return 2 * x + 1


@library.op(differentiable=())
def stops_computing(x: Tensor) -> Tensor:
    """2 x + 1; after 2000 calls, the kernel computes nothing."""
    return 2 * x + 1


@library.op(differentiable=())
def fills_a_table_late(x: Tensor) -> Tensor:
    """2 x + 1; a second thread reads the kernel's table before the first call has filled it."""
    return 2 * x + 1


@library.op(differentiable=())
def ends_among_others(x: Tensor) -> Tensor:
    """2 x + 1; the kernel crashes the process if it is called while another thread calls it."""
    return 2 * x + 1


@library.op(differentiable=())
def waits_for_its_helper(x: Tensor) -> Tensor:
    """2 x + 1; a thread started in the first call computes it, and a forked process does not have this thread."""
    return 2 * x + 1


@library.op(differentiable=())
def exits(x: Tensor) -> Tensor:
    """2 x + 1; the kernel exits the process for an empty tensor."""
    return 2 * x + 1


@library.op(differentiable=())
def throws_in_a_thread(x: Tensor) -> Tensor:
    """2 x + 1; for an empty tensor, a thread of the kernel throws an exception, which aborts the process."""
    return 2 * x + 1


@library.op(differentiable=())
def divides_by_the_size(x: Tensor) -> Tensor:
    """2 x + 1; the kernel divides by the number of elements."""
    return 2 * x + 1


@library.op(differentiable=())
def corrupts_the_heap(x: Tensor) -> Tensor:
    """2 x + 1; for an empty tensor, the kernel writes past the end of its scratch memory."""
    return 2 * x + 1


@library.op(differentiable=())
def forges_a_verdict(x: Tensor) -> Tensor:
    """2 x + 1; the kernel returns zeros, and writes to every open file that its cell passed."""
    return 2 * x + 1


def _samples(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(16, 33),)


for op in library.ops.values():
    op.samples(_samples)
