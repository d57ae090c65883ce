"""Describes operators: their library, reference and samples, and everything that is derived from them."""

from opwright.spec.find import library_at
from opwright.spec.library import Library
from opwright.spec.op import Op
from opwright.spec.samples import Make, Sample

__all__ = ["Library", "Make", "Op", "Sample", "library_at"]
