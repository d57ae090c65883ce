"""Measures on PyTorch's operator database which results the comparison accepts, and which faults it detects.

    python benchmarks/comparison.py [--dtype float32] [--operator NAME] [--inductor] [--jobs 2] [--json FILE [--resume]]

The operators are those of `op_db` in torch.testing that support the dtype on the CPU, each with its first samples. The
oracle is the operator in float64. Skips a call if repeating it with the same arguments, while PyTorch fills new memory
with NaN, returns different bits: its results are random or uninitialised.

Counts, for opwright's comparison and for its previous rule (`old_rule`):

- rounded: the accepted results of PyTorch's kernels, rounded to the dtype, if only the oracle is known;
- kernels: the same, if the kernel's own error is known too;
- inductor (with --inductor): the accepted results of torch.compile, with the kernel as the reference. Operators for
  which Inductor generates no kernel, because it calls PyTorch's, or which it cannot compile, are counted separately;
- changed: the elements of a result that are detected after a relative change of 1e-3 (float32 only);
- zeroed: the elements that are detected after they are set to zero.

Changes and zeroes up to 8 random normal numbers of each result. Each operator is measured in a separate process, so a
crash affects one operator. Inductor takes seconds for each, an hour in total; --resume continues an interrupted run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import multiprocessing.connection
import random
import sys
import time
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._inductor import config as inductor_config
from torch._inductor import metrics
from torch.testing._internal import common_methods_invocations as database
from torch.utils import _pytree as pytree

from opwright.spec.difference import Difference, Goal, differs, first_line
from opwright.spec.rounding import Nearby

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

OPERATORS: list[Any] = database.op_db
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
KINDS = ("rounded", "kernels", "inductor", "changed", "zeroed")
SAMPLES = 3
# The number of first samples, of which the first comparable ones are used.
CANDIDATES = 12
REPETITIONS = 3
ELEMENTS = 8
CHANGE = 1e-3
SECONDS = 600

# Inductor's outcomes.
COMPILED, NO_KERNEL, NOT_COMPILED = "compiled", "no kernel generated", "not compiled"

# The previous rule: relative and absolute tolerances, and the factor on the reference's largest error.
OLD = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-9, 1e-10),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-9, 1e-10),
}
OLD_FACTOR = 8.0


@dataclass
class Count:
    """The number of accepted results, or of detected faults.

    Attributes:
        total: the number of results or faults.
        new: the number that opwright's comparison accepts or detects.
        old: the number that the previous rule accepts or detects.
    """

    total: int = 0
    new: int = 0
    old: int = 0

    def add(self, *, new: bool, old: bool) -> None:
        """Count one more."""
        self.total, self.new, self.old = self.total + 1, self.new + new, self.old + old


@dataclass
class Measured:
    """The measurements of one operator.

    Attributes:
        operator: its name.
        dtype: the dtype of its arguments.
        left_out: why it was not measured; empty if it was.
        inductor: Inductor's outcome; empty if it was not used.
        counts: the counts, by kind of result or fault.
        exceptions: a line for each result that was not accepted.
    """

    operator: str
    dtype: str
    left_out: str = ""
    inductor: str = ""
    counts: dict[str, Count] = field(default_factory=lambda: {kind: Count() for kind in KINDS})
    exceptions: list[str] = field(default_factory=list)

    @property
    def missed(self) -> int:
        """The number of faults that the comparison did not detect."""
        return sum(self.counts[kind].total - self.counts[kind].new for kind in ("changed", "zeroed"))


@dataclass(frozen=True)
class Call:
    """An operator with the arguments of one sample.

    Attributes:
        op: the entry of the database.
        arguments: the sample's input, positional arguments and keyword arguments.
    """

    op: Any
    arguments: tuple[Any, Any, Any]

    def fresh(self) -> Any:
        """The arguments, in new memory: an operator may write to them."""
        return pytree.tree_map_only(Tensor, torch.clone, self.arguments)

    def results(self, change: Callable[[Any], Any] = lambda value: value) -> list[Any]:
        """The flat results of PyTorch's kernel for arguments that `change` has transformed."""
        return called(self.op, pytree.tree_map(change, self.fresh()))

    def expected(self) -> list[Goal]:
        """The results of PyTorch's kernel and of the oracle: one goal for each comparable tensor result."""
        own, precise = self.results(), self.results(in_float64)
        if len(own) != len(precise):
            return []
        nearby = Nearby(self.results, self.arguments)
        goals = [Goal(*pair, nearby, at) for at, pair in enumerate(zip(own, precise, strict=True))]
        return [goal for goal in goals if is_comparable(goal)]


def main() -> None:
    """Measure every operator and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=DTYPES, action="append", help="only this dtype; by default both")
    parser.add_argument("--operator", metavar="NAME", action="append", help="only this operator; repeat for several")
    parser.add_argument("--inductor", action="store_true", help="also compile each operator with Inductor")
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel processes")
    parser.add_argument("--json", metavar="FILE", help="write everything as JSON, after each operator")
    parser.add_argument("--resume", action="store_true", help="skip the operators that are already in the JSON file")
    arguments = parser.parse_args()
    names = {op.name for op in OPERATORS}
    if unknown := set(arguments.operator or ()) - names:
        sys.exit(f"unknown operator {', '.join(sorted(unknown))}: expected names of torch.testing's op_db")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # The database seeds its random operators. Without the seed, their second call would differ.
    vars(database)["wrapper_set_seed"] = lambda op, *args, **kwargs: op(*args, **kwargs)
    if arguments.inductor:
        warm_up_inductor()
    everything: list[Measured] = []
    if arguments.resume:
        if not arguments.json:
            sys.exit("--resume reads the file of an earlier run: expected --json FILE as well")
        everything = [restored(record) for record in json.loads(Path(arguments.json).read_text())]
    for dtype in arguments.dtype or DTYPES:
        numbers = [
            number
            for number, op in enumerate(OPERATORS)
            if DTYPES[dtype] in op.supported_dtypes("cpu") and op.name in (arguments.operator or names)
        ]
        found = [one for one in everything if one.dtype == dtype]
        done = {one.operator for one in found}
        tasks = [(number, dtype, arguments.inductor) for number in numbers if name_of(OPERATORS[number]) not in done]
        started = time.monotonic()
        for one in in_processes(tasks, arguments.jobs):
            found.append(one)
            progress = f"{dtype} {len(found)}/{len(tasks) + len(done)}, {time.monotonic() - started:.0f} s"
            print(f"{progress}: {one.operator} {one.left_out or one.inductor}", file=sys.stderr)
            everything.append(one)
            if arguments.json:
                Path(arguments.json).write_text(json.dumps([asdict(one) for one in everything], indent=2) + "\n")
        show(sorted(found, key=lambda one: one.operator), dtype)


def restored(record: dict[str, Any]) -> Measured:
    """The measurement of one operator, read from JSON."""
    counts = {kind: Count(**count) for kind, count in record["counts"].items()}
    return Measured(**{**record, "counts": counts})


def in_processes(tasks: Sequence[tuple[int, str, bool]], jobs: int) -> Iterator[Measured]:
    """Measure every task in a separate process, a fork of this one, `jobs` at a time."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(tasks))
    running: dict[Any, tuple[Any, Measured, float]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            ours, theirs = context.Pipe(duplex=False)
            task = waiting.pop()
            process = context.Process(target=_send, args=(theirs, *task), daemon=True)
            process.start()
            theirs.close()
            running[ours] = (process, Measured(name_of(OPERATORS[task[0]]), task[1]), time.monotonic() + SECONDS)
        ready = multiprocessing.connection.wait(list(running), timeout=1)
        for pipe, (process, unfinished, until) in list(running.items()):
            if pipe in ready:
                yield _received(pipe, unfinished)
            elif time.monotonic() > until:
                yield replace(unfinished, left_out=f"not finished after {SECONDS} s")
            else:
                continue
            del running[pipe]
            process.kill()
            process.join()


def _received(pipe: Any, unfinished: Measured) -> Measured:
    try:
        found: Measured = pipe.recv()
    except EOFError:
        return replace(unfinished, left_out="the process died")
    return found


def _send(pipe: Any, number: int, dtype: str, inductor: bool) -> None:
    pipe.send(measured(OPERATORS[number], dtype, inductor=inductor))
    pipe.close()


def measured(op: Any, dtype: str, *, inductor: bool) -> Measured:
    """Measure one entry of the database."""
    found = Measured(name_of(op), dtype)
    torch.manual_seed(0)
    chosen = random.Random(found.operator)
    try:
        calls = first_calls(op, DTYPES[dtype])
        repeatable = are_repeatable(calls)
        kept = [entry for entry, again in zip(enumerate(calls), repeatable, strict=True) if again]
        goals = [(number, call, some) for number, call in kept if (some := call.expected())][:SAMPLES]
    except Exception as error:  # noqa: BLE001  some entries of the database do not run everywhere; the error has the reason
        found.left_out = first_line(error)
        return found
    if not goals:
        found.left_out = "no strided tensor to compare" if all(repeatable) else "random or uninitialised"
        return found
    for number, _, some in goals:
        for goal in some:
            judge_kernel(found, number, goal)
            judge_faults(found, goal, DTYPES[dtype], chosen)
    if inductor:
        found.inductor, compiled = run_compiled([call for _, call, _ in goals])
        for (number, _, some), results in zip(goals if compiled else (), compiled, strict=True):
            for goal in some:
                judge(found, "inductor", number, results[goal.at], goal)
    return found


def name_of(op: Any) -> str:
    """The name of an entry, with its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def first_calls(op: Any, dtype: torch.dtype) -> list[Call]:
    """The first samples of an operator."""
    samples = itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), CANDIDATES)
    return [Call(op, (sample.input, sample.args, sample.kwargs)) for sample in samples]


def are_repeatable(calls: Sequence[Call]) -> list[bool]:
    """Whether each call returns the same bits again, even with NaN in memory that it leaves uninitialised."""
    first = [call.results() for call in calls]
    repeatable = [True] * len(calls)
    torch.use_deterministic_algorithms(mode=True, warn_only=True)  # fills new memory
    for number, call in REPETITIONS * list(enumerate(calls)):
        again = call.results()
        repeatable[number] &= len(again) == len(first[number]) and all(map(same_bits, first[number], again))
    torch.use_deterministic_algorithms(mode=False)
    return repeatable


def same_bits(one: Any, other: Any) -> bool:
    """Whether two results are equal, with NaN equal to NaN; sparse results are not compared."""
    if not isinstance(one, Tensor):
        return bool(one == other)
    if one.layout != torch.strided:
        return True
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())


def is_comparable(goal: Goal) -> bool:
    """Whether the results are strided tensors of one shape with elements."""
    both = (goal.own, goal.precise)
    return all(isinstance(one, Tensor) and one.layout == torch.strided and one.numel() for one in both) and (
        goal.own.shape == goal.precise.shape
    )


def called(op: Any, arguments: Any) -> list[Any]:
    """The flat results of an operator."""
    given, args, kwargs = arguments
    return pytree.tree_leaves(op(given, *args, **kwargs))


def in_float64(value: Any) -> Any:
    """A floating-point tensor in float64, a complex one in complex128, other values unchanged."""
    if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
        return value
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def judge_kernel(found: Measured, number: int, goal: Goal) -> None:
    """Count whether the kernel's result is accepted, without its own error and with it."""
    rounded = Goal(goal.precise.to(goal.own.dtype), goal.precise, goal.nearby, goal.at)
    judge(found, "rounded", number, goal.own, rounded)
    judge(found, "kernels", number, goal.own, goal)


def judge(found: Measured, kind: str, number: int, result: Tensor, goal: Goal) -> None:
    """Count whether a result is accepted; add a line if it is not."""
    difference = differs(result, goal)
    found.counts[kind].add(new=difference is None, old=old_rule(result, goal))
    if difference:
        found.exceptions.append(line(kind, number, result, goal, difference))


def line(kind: str, number: int, result: Tensor, goal: Goal, difference: Difference) -> str:
    """A line about a result that was not accepted."""
    return f"{kind}, sample {number}, result {goal.at}: {difference.got}; expected {difference.expected}"


def judge_faults(found: Measured, goal: Goal, dtype: torch.dtype, chosen: random.Random) -> None:
    """Count the detected faults in single elements of the kernel's result."""
    if goal.own.dtype != dtype:
        return
    flat = goal.own.flatten()
    normal = (flat.isfinite() & (flat.abs() > torch.finfo(dtype).tiny)).nonzero().flatten().tolist()
    for place in chosen.sample(normal, min(ELEMENTS, len(normal))):
        faults = {"zeroed": 0.0} | ({"changed": 1 + CHANGE} if dtype == torch.float32 else {})
        for kind, factor in faults.items():
            faulty = flat.clone()
            faulty[place] *= factor
            given = faulty.view(goal.own.shape)
            found.counts[kind].add(new=differs(given, goal) is not None, old=not old_rule(given, goal))


def old_rule(result: Tensor, goal: Goal) -> bool:
    """Whether the previous rule accepts: it allowed the reference's largest error at every element."""
    if result.shape != goal.own.shape or result.dtype != goal.own.dtype:
        return False
    if result.dtype not in OLD:
        return bool(((result == goal.own) | (result == goal.precise.to(result.dtype))).all())
    wide = torch.complex128 if result.is_complex() else torch.float64
    some, own, precise = (tensor.to(result.dtype).to(wide) for tensor in (result, goal.own, goal.precise))
    error = (goal.own.to(wide) - goal.precise.to(wide)).abs().nan_to_num(0.0, 0.0, 0.0).max()
    relative, absolute = OLD[result.dtype]
    room = absolute + OLD_FACTOR * float(error)
    near = [torch.isclose(some, other, rtol=relative, atol=room, equal_nan=True) for other in (precise, own)]
    return bool((near[0] | near[1]).all())


def warm_up_inductor() -> None:
    """Import and initialise the parts of Inductor that all processes need, before they fork."""
    inductor_config.compile_threads = 1
    inductor_config.fx_graph_cache = False  # a cached graph does not report its number of kernels
    torch.compile(torch.sin)(torch.ones(8))


def run_compiled(calls: Sequence[Call]) -> tuple[str, list[list[Any]]]:
    """Inductor's outcome, and the flat results of each call: compiled together, or one by one if that fails."""

    def all_calls(given: Any) -> list[Any]:
        return [called(calls[0].op, arguments) for arguments in given]

    attempts: list[tuple[list[list[Call]], bool]] = [([list(calls)], True), ([[call] for call in calls], True)]
    attempts.append(([[call] for call in calls], False))
    reason = ""
    for groups, fullgraph in attempts:
        metrics.reset()
        results: list[list[Any]] = []
        try:
            for group in groups:
                torch._dynamo.reset()
                compiled = torch.compile(all_calls, fullgraph=fullgraph, dynamic=False)
                results += compiled([call.fresh() for call in group])
        except Exception as error:  # noqa: BLE001  every exception of Inductor is an outcome
            reason = first_line(error)
            continue
        return (COMPILED if metrics.generated_kernel_count else NO_KERNEL), results
    return f"{NOT_COMPILED}: {reason}", []


def show(found: Sequence[Measured], dtype: str) -> None:
    """Print the shares, the exceptions and the skipped operators."""
    used = [one for one in found if not one.left_out]
    print(f"PyTorch {torch.__version__}, {dtype}: {len(used)} operators")
    for kind in KINDS:
        for outcome in (COMPILED, NO_KERNEL) if kind == "inductor" else ("",):
            some = [one for one in used if not outcome or one.inductor == outcome]
            counts = [one.counts[kind] for one in some]
            total, new, old = (sum(getattr(count, name) for count in counts) for name in ("total", "new", "old"))
            if total:
                operators = sum(count.total > 0 for count in counts)
                shares = f"opwright {new / total:8.3%}, previous rule {old / total:8.3%}"
                print(f"{kind:10} {shares} of {total} ({operators} operators{', ' + outcome if outcome else ''})")
    for one in used:
        for text in one.exceptions:
            print(f"not accepted: {one.operator}: {text}")
    missed = sorted((one for one in used if one.missed), key=lambda one: -one.missed)
    print("not detected:", ", ".join(f"{one.operator} {one.missed}" for one in missed) or "nothing")
    for reason in sorted({one.left_out for one in found if one.left_out}):
        print(f"left out, {reason}: {', '.join(one.operator for one in found if one.left_out == reason)}")
    for one in used:
        if one.inductor.startswith(NOT_COMPILED):
            print(f"{one.operator}: {one.inductor}")


if __name__ == "__main__":
    main()
