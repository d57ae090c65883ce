"""The operator under check: its calls, and whether their results are correct."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import torch

from opwright.checker.cases.code import call_code
from opwright.checker.cases.cost import Costs
from opwright.checker.cases.large import extent, large_case
from opwright.checker.cases.samples import errors, samples
from opwright.checker.cases.search import limits, pairs, varied
from opwright.checker.gpu_watch import GpuWatch
from opwright.checker.judge import LocalJudge
from opwright.errors import SpecError
from opwright.loader.external import has_argument_names, is_external
from opwright.loader.kernels import has_gradient_kernel, overload_of
from opwright.spec import derive
from opwright.spec.expected import call_results

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opwright.checker.cases.case import Case
    from opwright.checker.job import Options
    from opwright.checker.judge import Judge, Outline
    from opwright.checker.verdict import Failure
    from opwright.spec import Op


class Subject:
    """One operator on one device.

    Attributes:
        op: the description of the operator.
        library: its library.
        path: the shared object; None if the library has no native source.
        device: `cpu` or `cuda`.
        options: the options of the check.
        work: a folder for files.
        is_external: whether the operator belongs to an external library.
        state_before_loading: the state of the process before the library was loaded.
        watch: watches the GPU; None for the CPU.
    """

    def __init__(
        self, op: Op, path: Path | None, device: str, options: Options, work: Path, judge: Judge | None = None
    ) -> None:
        self.op = op
        self.library = op.library
        self.path = path
        self.device = device
        self.options = options
        self.work = work
        self.is_external = is_external(op.library, path)
        self.state_before_loading: dict[str, Any] = {}
        self.watch = GpuWatch() if device == "cuda" else None
        self._judge = judge or LocalJudge(op)
        self._costs = Costs(op)
        self._drawing: dict[str, bool] = {}

    @functools.cached_property
    def overload(self) -> Any:
        """PyTorch's overload of the operator."""
        return overload_of(self.op)

    @functools.cached_property
    def has_gradient_kernel(self) -> bool:
        """Whether a gradient is registered; opwright registers one for its own operators."""
        return not self.is_external or has_gradient_kernel(self.op.qualified_name, self.device)

    @functools.cached_property
    def takes_names(self) -> bool:
        """Whether the arguments can be passed by name; a schema that PyTorch infers from C++ has no names."""
        return not self.is_external or has_argument_names(self.op)

    @functools.cached_property
    def samples(self) -> list[Case]:
        """The author's own calls, which must work.

        Raises:
            SpecError: they do not match the operator, or the judge draws different ones.
        """
        made = samples(self.op, self.device, self.options.seed)
        if not self._judge.has_samples(made):
            msg = (
                f"the samples of {self.op.qualified_name} differ between processes: draw random numbers with `make`, "
                "or seed their generator"
            )
            raise SpecError(msg)
        return made

    @functools.cached_property
    def errors(self) -> list[tuple[str, Case]]:
        """The calls that raise an error, as the author claims, and a part of each message.

        Raises:
            SpecError: they do not match the operator, or are outside its domain.
        """
        return errors(self.op, self.device, self.options.seed)

    @functools.cached_property
    def claimed(self) -> list[Case]:
        """The author's own calls, in every dtype that they claim."""
        return [*self.samples, *(case for case in self.varied if case.claimed)]

    @functools.cached_property
    def varied(self) -> list[Case]:
        """Variations of the samples inside the domain, whose results must be correct or which must be rejected."""
        return self._searched[0]

    @property
    def excluded(self) -> str:
        """A note on skipped variations, too expensive or outside the domain; empty if there are none."""
        return "; ".join(filter(None, (self._too_expensive, self._outside)))

    @property
    def _too_expensive(self) -> str:
        left_out = self._costs.left_out
        several = "calls were" if left_out > 1 else "call was"
        return f"{left_out} {several} skipped: the reference takes too much time or memory" if left_out else ""

    @property
    def _outside(self) -> str:
        reasons = self._searched[1] if self.op.has_domain else []
        if not reasons:
            return ""
        why = f" ({reasons[0]})" if len(set(reasons)) == 1 else ""
        several = len(reasons) > 1
        count = f"{len(reasons)} variations are" if several else "1 variation is"
        return f"{count} outside the domain declared in op.py and {'were' if several else 'was'} not called{why}"

    @functools.cached_property
    def _searched(self) -> tuple[list[Case], list[str]]:
        """The variations inside the domain, and why the others are outside."""
        cases = varied(self.op, self.samples, self.device, self.options, self._costs)
        if not self.op.has_domain:
            return cases, []
        reasons = {case.name: self.op.why_outside(case.fresh()) for case in cases}
        return [case for case in cases if not reasons[case.name]], list(filter(None, reasons.values()))

    def pairs(self) -> Iterator[Case]:
        """Combinations of two variations inside the domain; each must be correct or rejected."""
        for case in pairs(self.op, self.samples, self.varied, self.options, self._costs):
            if not self.is_outside(case):
                yield case

    def limits(self) -> Iterator[Case]:
        """Calls inside the domain, at the limits of what the reference accepts and beyond them."""
        known = {case.name for case in self.varied}
        for case in limits(self.op, self.samples, self.device, self.options, self._costs):
            if case.name not in known and not self.is_outside(case):
                yield case

    def is_outside(self, case: Case) -> bool:
        """Whether the call is outside the domain declared in op.py."""
        return self.op.has_domain and bool(self.op.why_outside(case.fresh()))

    def large(self) -> tuple[Case | None, str]:
        """A large call, to be freed soon, or why there is none; both are empty if none is requested.

        On a GPU it takes only seconds, so every full check makes it.
        """
        if not (self.options.large or (self.device == "cuda" and not self.options.quick)):
            return None, ""
        case, reason = large_case(self.op, self.samples, self.device, self.options.seed)
        if case is not None and self.op.has_domain and (outside := self.op.why_outside(case.fresh())):
            return (
                None,
                f"no call with more than {extent(self.device)} was tried: it is outside the domain ({outside})",
            )
        return case, reason

    def call(self, arguments: dict[str, Any]) -> list[Any]:
        """Call the operator, and return its results in order, followed by the arguments that it declares to mutate.

        On a GPU, its work is complete when this returns.

        Raises:
            FailedLaunchError: the operator returned, but a kernel that it launched never ran.
        """
        with contextlib.nullcontext() if self.watch is None else self.watch.watched():
            return self.enqueue(arguments)

    def enqueue(self, arguments: dict[str, Any]) -> list[Any]:
        """`call` without waiting for the GPU: the operator's work is enqueued on the current stream."""
        positional, keywords = self.op.spread(arguments)
        return self.outcome(self.overload(*positional, **keywords), arguments)

    def outcome(self, results: Any, arguments: dict[str, Any]) -> list[Any]:
        """The results of a call in one list, followed by the arguments that the operator mutates."""
        return call_results(self.op, results, arguments)

    def expected(self, case: Case) -> Outline:
        """The expected results of the case without their numbers, or the expected error."""
        return self._judge.outline(case)

    def forget(self, case: Case) -> None:
        """Free the expected results of the case."""
        self._judge.forget(case)

    def judge(self, case: Case, results: list[Any]) -> Failure | None:
        """The fault in `results`, which a runtime returned for `case`; None if they are correct."""
        return self._judge.fault(case, results)

    def is_steady(self, case: Case) -> bool:
        """Whether the reference returns the same results when called again; one that exists only in Python may not."""
        return self._judge.is_steady(case)

    def draws_random_numbers(self, case: Case) -> bool:
        """Whether the reference uses PyTorch's random generator. It runs once for each case, which can take seconds."""
        if case.name not in self._drawing:
            before = torch.get_rng_state()
            positional, keywords = self.op.spread(case.plain())
            with contextlib.suppress(Exception):
                self.op.reference(*positional, **keywords)
            self._drawing[case.name] = not torch.equal(before, torch.get_rng_state())
        return self._drawing[case.name]

    def code(self, case: Case) -> str:
        """Lines of Python that call the operator with `case`."""
        return call_code(self.op, case)

    def floating(self, case: Case) -> list[str]:
        """The arguments of `case` that autograd can track: floating or complex ones, in a call with such a result.

        An operator of an external library may reject gradients that op.py does not declare.
        """
        expected = self.expected(case)
        if expected.refusal or not any(map(derive.has_gradient, derive.tensors(list(expected.own)))):
            return []
        names = [
            name for name, value in case.arguments.items() if any(map(derive.has_gradient, derive.tensors([value])))
        ]
        if self.is_external and self.op.differentiable:
            return [name for name in names if name in self.op.differentiable]
        return names

    def declared_differentiable(self, case: Case) -> list[str]:
        """The arguments of `floating` that op.py declares differentiable."""
        return [name for name in self.floating(case) if name in self.op.differentiable]

    def differentiable(self, case: Case) -> list[str]:
        """The arguments of `case` that have a gradient; none if the operator lacks one."""
        return self.declared_differentiable(case) if self.has_gradient_kernel else []
