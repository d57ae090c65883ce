"""What an operator is: its library, its reference, its schema."""

from opwright.spec.find import library_at
from opwright.spec.library import Library
from opwright.spec.op import Op

__all__ = ["Library", "Op", "library_at"]
