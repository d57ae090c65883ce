"""A package must contain compiled code, in its own folder, and is never compiled or unpacked elsewhere."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.host.conftest import Bundle, Loads

FOLDER = "data/aotinductor/model"


def _package(records: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {"version": "3", "byteorder": "little", **records}.items():
            archive.writestr(f"model/{name}", content)
    return file.getvalue()


@pytest.mark.parametrize("elsewhere", ["nothing", "x.so", f"{FOLDER}.so", f"{FOLDER}/deeper/x.so", "data/x/model/x.so"])
def test_a_package_without_compiled_code_is_refused_and_none_of_its_commands_runs(
    loads: Loads, package: Bundle, tmp_path: Path, elsewhere: str
) -> None:
    canary = tmp_path / "canary"
    lists = ("cflags", "definitions", "include_dirs", "ldflags", "libraries", "libraries_dirs", "passthrough_args")
    commands = json.dumps({"compiler": f"touch {canary} #", "compile_only": True, **{name: [] for name in lists}})
    sources = {
        f"{FOLDER}/x.wrapper.cpp": "",
        f"{FOLDER}/x.wrapper_compile_flags.json": commands,
        f"{FOLDER}/x.wrapper_linker_flags.json": commands,
        f"{FOLDER}/x.wrapper_metadata.json": json.dumps({"AOTI_DEVICE_KEY": "cpu"}),
    }
    package.put("model.pt2", _package({**sources, elsewhere: ""}))
    refusal = loads(package.path)
    assert refusal.code == "model_invalid"
    assert "it contains no compiled code, and the host does not compile" in refusal.message
    assert not canary.exists()


@pytest.mark.parametrize("name", ["../x.so", f"{FOLDER}/../../../../x.so", "/x.so", f"{FOLDER}/x/../../../../../x.so"])
def test_a_package_with_a_record_outside_it_is_refused(loads: Loads, package: Bundle, name: str) -> None:
    package.put("model.pt2", _package({f"{FOLDER}/x.so": "", name: "not to be written"}))
    refusal = loads(package.path)
    assert refusal.code == "model_invalid"
    assert f"its record '{name}' is a path outside the package" in refusal.message
