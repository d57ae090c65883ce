"""Converts a model to TorchScript: scripts or traces it, freezes it, and optimizes it for inference."""

from __future__ import annotations

import io
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

    from opwright.bundle.compile.compilation import Compilation

# The engine profiles the first calls, then rewrites the graph.
_CALLS = 3


def write_torchscript(work: Compilation) -> list[str]:
    """Write the model as TorchScript, and compare it with its goldens after each transform.

    Returns:
        The names of the operators that the model calls.

    Raises:
        BundleError: the model cannot be converted to TorchScript, or a transform changes its results.
    """
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        script = _script(work)
        frozen = _transformed("freeze", script, torch.jit.freeze, work)
        # optimize_for_inference rewrites its model in place, and the frozen one may still be needed.
        final = _optimized(torch.jit.freeze(script), frozen, work)
        work.comparator.compare("saved and loaded", load_torchscript(work.path, work.device), runs=_CALLS)
    return sorted({name.partition(".")[0] for name in torch.jit.export_opnames(final)})


def _script(work: Compilation) -> ScriptModule:
    source, precision = work.source, work.precision
    if source.kind == "torchscript" and isinstance(source.model, torch.jit.ScriptModule):
        if precision != "float32":
            msg = (
                f"{source.name} is already TorchScript, so its precision cannot be changed: name the callable that "
                f"creates the model, or omit --precision {precision}"
            )
            raise BundleError(msg)
        work.comparator.compare("the original TorchScript", source.model, runs=_CALLS)
        return source.model
    if source.kind != "module":
        msg = (
            f"{source.name} is an exported program, which cannot become TorchScript: use --format aoti, or name "
            "the callable that creates the model"
        )
        raise BundleError(msg)
    if precision == "bfloat16":
        return _traced(for_bfloat16(source.model, work), work)
    work.progress.step("scripting")
    script = torch.jit.script
    try:
        scripted: ScriptModule = script(source.model)
    except Exception as error:  # noqa: BLE001  the TorchScript compiler raises many types
        work.notes.append(f"traced, because it cannot be scripted: {_reason(error)}")
        return _traced(source.model, work)
    work.comparator.compare("script", scripted, runs=_CALLS)
    return scripted


def _traced(model: Callable[..., Any], work: Compilation) -> ScriptModule:
    work.progress.step("tracing")
    trace: Any = torch.jit.trace
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TracerWarning)
            traced: ScriptModule = trace(Flat(model).eval(), work.comparator.goldens[0].fresh(), check_trace=False)
    except Exception as error:
        msg = f"the model can be neither scripted nor traced: {first_line(error)}. Try --format aoti"
        raise BundleError(msg) from error
    for warning in dict.fromkeys(str(one.message).splitlines()[0] for one in caught if one.category is TracerWarning):
        work.notes.append(f"a trace records only the path that the first sample took. PyTorch warns: {warning}")
    work.comparator.compare(
        "trace",
        traced,
        runs=_CALLS,
        advice="A trace records only the path that the first sample took: write code that depends on sizes or values "
        "so that torch.jit.script compiles it, or use --format aoti",
    )
    return traced


def _transformed(
    name: str, script: ScriptModule, transform: Callable[[ScriptModule], ScriptModule], work: Compilation
) -> ScriptModule:
    work.progress.step(name)
    try:
        made = transform(script)
    except Exception as error:
        msg = f"{name} failed: {first_line(error)}"
        raise BundleError(msg) from error
    work.comparator.compare(name, made, runs=_CALLS)
    return made


def _optimized(spare: ScriptModule, frozen: ScriptModule, work: Compilation) -> ScriptModule:
    """The written model: optimized if the result can be saved and loaded."""
    name = "optimize_for_inference"
    optimized = _transformed(name, spare, torch.jit.optimize_for_inference, work)
    _save(optimized, work.path)
    try:
        load_torchscript(work.path, work.device)
    except BundleError:
        # It stores weights in oneDNN's own layout for float32, which cannot be written to files.
        work.notes.append(f"{name} is skipped: its result for this model cannot be saved")
        work.comparator.forget(name)
    else:
        return optimized
    _save(frozen, work.path)
    return frozen


def _save(script: ScriptModule, path: Path) -> None:
    saved = io.BytesIO()
    torch.jit.save(script, saved)
    write_again(saved, path)


def _reason(error: Exception) -> str:
    """Why the TorchScript compiler rejects a model, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    at = next((line for line in lines if line.startswith("File ")), "")
    reason = lines[0] if lines else type(error).__name__
    return f"{reason.rstrip(':.')}" + (f" ({at.rstrip(':')})" if at else "")
