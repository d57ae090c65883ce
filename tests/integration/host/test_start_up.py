"""`opwright run` and `opwright verify` find and execute the host without importing torch."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from opwright.host.install import host_program

HEAVY = {"torch", "numpy", "rich", "filelock", "ninja", "jinja2"}


@pytest.mark.parametrize(("verb", "answer"), [("run", "expected one of --input"), ("verify", "manifest.json")])
def test_a_verb_that_starts_the_host_does_not_import_heavy_packages(verb: str, answer: str, tmp_path: Path) -> None:
    host_program()  # built once, so that the verb finds it
    program = Path(sys.executable).with_name("opwright")
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", program, verb, tmp_path], capture_output=True, text=True, check=False
    )
    imported = re.findall(r"^import time:.*\| +(\S+)$", ended.stderr, flags=re.MULTILINE)
    assert "opwright.host.install" in imported
    assert {module.partition(".")[0] for module in imported} & HEAVY == set()
    assert answer in ended.stderr  # the host's own error shows that it was started
