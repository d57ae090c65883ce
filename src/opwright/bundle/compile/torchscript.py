"""Makes TorchScript of a model: scripted or else traced, frozen, and optimised for inference."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch.jit._trace import TracerWarning

from opwright.bundle.compare.outputs import Flat
from opwright.bundle.compile.archive import write_again
from opwright.bundle.compile.precision import for_bfloat16
from opwright.bundle.source.saved import load_torchscript
from opwright.errors import BundleError
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch.jit import ScriptModule

    from opwright.bundle.compare.comparator import Judge
    from opwright.bundle.source.find import Source

# The engine watches the first calls, and rewrites the graph then.
_CALLS = 3


def write_torchscript(source: Source, path: Path, judge: Judge, precision: str) -> list[str]:
    """Write the model to `path`, compared with its goldens after each transform.

    Returns:
        The names of the operators that it calls.

    Raises:
        BundleError: it cannot be made into TorchScript, or a transform changes its results.
    """
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        script = _begun(source, judge, precision)
        frozen = _transformed("freeze", script, torch.jit.freeze, judge)
        # The one that is optimised is rewritten in place; the other one may be needed.
        final = _optimized(torch.jit.freeze(script), frozen, path, judge)
        judge.examine("saved and loaded", load_torchscript(path), runs=_CALLS)
    return sorted({name.partition(".")[0] for name in torch.jit.export_opnames(final)})


def _begun(source: Source, judge: Judge, precision: str) -> ScriptModule:
    if source.kind == "torchscript" and isinstance(source.model, torch.jit.ScriptModule):
        if precision != "float32":
            msg = (
                f"{source.name} is TorchScript already, and its precision cannot be changed: name the callable that "
                f"makes the model, or leave --precision {precision} out"
            )
            raise BundleError(msg)
        judge.examine("TorchScript as it was given", source.model, runs=_CALLS)
        return source.model
    if source.kind != "module":
        msg = (
            f"{source.name} is an exported program, of which no TorchScript can be made: give --format aoti, or name "
            "the callable that makes the model"
        )
        raise BundleError(msg)
    if precision == "bfloat16":
        return _traced(for_bfloat16(source.model, judge), judge)
    judge.step("scripting")
    script = torch.jit.script
    try:
        scripted: ScriptModule = script(source.model)
    except Exception as error:  # noqa: BLE001  the compiler of TorchScript raises many kinds
        judge.note(f"traced, since it cannot be scripted: {_reason(error)}")
        return _traced(source.model, judge)
    judge.examine("script", scripted, runs=_CALLS)
    return scripted


def _traced(model: Callable[..., Any], judge: Judge) -> ScriptModule:
    judge.step("tracing")
    trace: Any = torch.jit.trace
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", TracerWarning)
            traced: ScriptModule = trace(Flat(model).eval(), judge.goldens[0].fresh(), check_trace=False)
    except Exception as error:
        msg = f"the model can be neither scripted nor traced: {first_line(error)}. Try --format aoti"
        raise BundleError(msg) from error
    for said in dict.fromkeys(str(one.message).splitlines()[0] for one in told if one.category is TracerWarning):
        judge.note(f"a trace keeps what the first sample decided, and PyTorch warns: {said}")
    judge.examine(
        "trace",
        traced,
        runs=_CALLS,
        advice="A trace keeps the one way that the first sample took: write what depends on sizes or values so that "
        "torch.jit.script takes it, or use --format aoti",
    )
    return traced


def _transformed(
    name: str, script: ScriptModule, transform: Callable[[ScriptModule], ScriptModule], judge: Judge
) -> ScriptModule:
    judge.step(name)
    try:
        made = transform(script)
    except Exception as error:
        msg = f"{name} fails: {first_line(error)}"
        raise BundleError(msg) from error
    judge.examine(name, made, runs=_CALLS)
    return made


def _optimized(spare: ScriptModule, frozen: ScriptModule, path: Path, judge: Judge) -> ScriptModule:
    """The model as it was written: optimised where that survives the way to a file and back."""
    name = "optimize_for_inference"
    optimized = _transformed(name, spare, torch.jit.optimize_for_inference, judge)
    _save(optimized, path)
    try:
        load_torchscript(path)
    except BundleError:
        # Weights in oneDNN's own layout, which it puts in for float32, are not written to files.
        judge.note(f"{name} is left out: what it makes of this model cannot be saved")
        del judge.by_output[name]
    else:
        return optimized
    _save(frozen, path)
    return frozen


def _save(script: ScriptModule, path: Path) -> None:
    torch.jit.save(script, str(path))
    write_again(path)


def _reason(error: Exception) -> str:
    """What the compiler of TorchScript minds, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    at = next((line for line in lines if line.startswith("File ")), "")
    said = lines[0] if lines else type(error).__name__
    return f"{said.rstrip(':.')}" + (f" ({at.rstrip(':')})" if at else "")
