"""The flavours of a new operator library, and the files of each."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import jinja2

_TEMPLATES = Path(__file__).with_name("templates")


class Flavour(enum.Enum):
    """The languages of a new library; the value is the name that `--json` uses."""

    CPU = "cpu"
    CUDA = "cuda"
    OPENCV = "opencv"
    PYTHON_ONLY = "python-only"

    @property
    def is_native(self) -> bool:
        """Whether a library of this flavour has sources to compile."""
        return self is not Flavour.PYTHON_ONLY

    @property
    def operator(self) -> str:
        """The name of the operator in a new library of this flavour."""
        return "gaussian_blur" if self is Flavour.OPENCV else "swiglu"

    def files(self, namespace: str) -> dict[str, str]:
        """The text of each file of a library with this namespace, by the file's name."""
        return {
            name: render(template, namespace=namespace, cuda=self is Flavour.CUDA, python_only=not self.is_native)
            for name, template in _FILES[self].items()
        }


def render(template: str, **values: Any) -> str:
    """The text of a file of a new library, from the template of that name."""
    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701  the files are not HTML, and a namespace is an identifier
        keep_trailing_newline=True,
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(template).render(values)


# By flavour: the files, in reading order, and the template of each.
_FILES = {
    Flavour.CPU: {"op.py": "op.py.jinja", "cpu.cpp": "cpu.cpp.jinja"},
    Flavour.CUDA: {
        "op.py": "op.py.jinja",
        "cpu.cpp": "cpu.cpp.jinja",
        "cuda.cu": "cuda.cu.jinja",
        "formulas.h": "formulas.h.jinja",
        "tensors.h": "tensors.h.jinja",
    },
    Flavour.OPENCV: {"op.py": "opencv_op.py.jinja", "cpu.cpp": "opencv_cpu.cpp.jinja"},
    Flavour.PYTHON_ONLY: {"op.py": "op.py.jinja"},
}
