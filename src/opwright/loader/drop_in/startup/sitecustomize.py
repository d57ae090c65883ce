"""Replaces PyTorch's builder with opwright's in the Python processes that a build starts."""

import contextlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

with contextlib.suppress(ImportError):  # a different Python, which does not build with this PyTorch
    from opwright.loader.drop_in.replacement import replace_torchs

    replace_torchs()

# This file hides a sitecustomize that Python would have imported instead.
_others = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).resolve().parent]
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _spec is not None and _spec.loader is not None:
    _spec.loader.exec_module(importlib.util.module_from_spec(_spec))
