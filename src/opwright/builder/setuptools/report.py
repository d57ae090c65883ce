"""Reports the shared objects that the processes of one project build, as lines of JSON in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opwright.builder.compile import Artefact

# The variable that names the file, for all processes that a build starts.
VARIABLE = "OPWRIGHT_SETUP_REPORT"


def add(target: Path, artefact: Artefact) -> None:
    """Add the shared object `target`, if a report is requested."""
    compiled = [str(source) for source in artefact.compiled]
    _write({"path": str(target), "compiled": compiled, "seconds": round(artefact.seconds, 3)})


def moved(target: Path, place: Path) -> None:
    """Record that setuptools has copied the shared object `target` to `place`."""
    _write({"path": str(target), "place": str(place)})


def read(file: Path) -> list[dict[str, Any]]:
    """The shared objects in the report `file`, each with its final `path`, `compiled` and `seconds`."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    places = {line["path"]: line["place"] for line in lines if "place" in line}
    return [{**line, "path": places.get(line["path"], line["path"])} for line in lines if "place" not in line]


def _write(line: dict[str, Any]) -> None:
    if (file := os.environ.get(VARIABLE)) is not None:
        with Path(file).open("a", encoding="utf-8") as report:
            report.write(json.dumps(line) + "\n")
