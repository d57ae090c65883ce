"""Makes TorchScript of a model: scripted or else traced, frozen, and optimised for inference."""

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

# The engine watches the first calls, and rewrites the graph then.
_CALLS = 3


def write_torchscript(work: Compilation) -> list[str]:
    """Write the model as TorchScript, compared with its goldens after each transform.

    Returns:
        The names of the operators that it calls.

    Raises:
        BundleError: it cannot be made into TorchScript, or a transform changes its results.
    """
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        script = _script(work)
        frozen = _transformed("freeze", script, torch.jit.freeze, work)
        # The optimised one is rewritten in place, and the other may be needed.
        final = _optimized(torch.jit.freeze(script), frozen, work)
        work.comparator.compare("saved and loaded", load_torchscript(work.path, work.device), runs=_CALLS)
    return sorted({name.partition(".")[0] for name in torch.jit.export_opnames(final)})


def _script(work: Compilation) -> ScriptModule:
    source, precision = work.source, work.precision
    if source.kind == "torchscript" and isinstance(source.model, torch.jit.ScriptModule):
        if precision != "float32":
            msg = (
                f"{source.name} is TorchScript already, and its precision cannot be changed: name the callable that "
                f"makes the model, or leave --precision {precision} out"
            )
            raise BundleError(msg)
        work.comparator.compare("TorchScript as it was given", source.model, runs=_CALLS)
        return source.model
    if source.kind != "module":
        msg = (
            f"{source.name} is an exported program, of which no TorchScript can be made: give --format aoti, or name "
            "the callable that makes the model"
        )
        raise BundleError(msg)
    if precision == "bfloat16":
        return _traced(for_bfloat16(source.model, work), work)
    work.progress.step("scripting")
    script = torch.jit.script
    try:
        scripted: ScriptModule = script(source.model)
    except Exception as error:  # noqa: BLE001  the compiler of TorchScript raises many kinds
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
        work.notes.append(f"a trace keeps what the first sample decided, and PyTorch warns: {warning}")
    work.comparator.compare(
        "trace",
        traced,
        runs=_CALLS,
        advice="A trace keeps the one way that the first sample took: write what depends on sizes or values so that "
        "torch.jit.script takes it, or use --format aoti",
    )
    return traced


def _transformed(
    name: str, script: ScriptModule, transform: Callable[[ScriptModule], ScriptModule], work: Compilation
) -> ScriptModule:
    work.progress.step(name)
    try:
        made = transform(script)
    except Exception as error:
        msg = f"{name} fails: {first_line(error)}"
        raise BundleError(msg) from error
    work.comparator.compare(name, made, runs=_CALLS)
    return made


def _optimized(spare: ScriptModule, frozen: ScriptModule, work: Compilation) -> ScriptModule:
    """The model as it was written: optimised if the result can be saved and loaded."""
    name = "optimize_for_inference"
    optimized = _transformed(name, spare, torch.jit.optimize_for_inference, work)
    _save(optimized, work.path)
    try:
        load_torchscript(work.path, work.device)
    except BundleError:
        # It puts weights into oneDNN's own layout for float32, and those cannot be written to files.
        work.notes.append(f"{name} is left out: what it makes of this model cannot be saved")
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
    """Why the compiler of TorchScript refuses a model, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    at = next((line for line in lines if line.startswith("File ")), "")
    reason = lines[0] if lines else type(error).__name__
    return f"{reason.rstrip(':.')}" + (f" ({at.rstrip(':')})" if at else "")
