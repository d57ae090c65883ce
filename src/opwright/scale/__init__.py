"""Runs a bundle on many inputs, each exactly once, on this machine or a Ray cluster."""

from importlib.util import find_spec

from opwright.errors import ToolchainError

if missing := [name for name in ("numpy", "pyarrow") if find_spec(name) is None]:
    msg = f"`opwright map` and `opwright.Predictor` require {missing[0]}: pip install 'opwright[map]'"
    raise ToolchainError(msg)
