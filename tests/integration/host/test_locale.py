"""An application's locale does not affect what the host reads, compares and writes."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.host.conftest import Bundle

SCHEMA = (
    "numbers(Tensor x, int n=100000, float f=123456.5, float g=1e+20, int[3] l=[1000, 20000, 300000], "
    'float[2] m=[1234.5, 0.5], *, int? k=7654321, str s="1.000") -> Tensor'
)
SOURCE = f"""
#include <opwright/op.h>
OPWRIGHT_LIBRARY(numbered, m) {{ m.def({json.dumps(SCHEMA)}); }}
"""


def _loaded(program: Path, bundle: Bundle, *words: str) -> str:
    done = subprocess.run([program, *words], input=f"{bundle.path}\n", capture_output=True, text=True, check=True)
    return done.stdout


def test_a_bundle_is_loaded_and_verified_in_a_locale_with_other_separators(
    loads_program: Path, bundle: Bundle, package: Bundle, compile_library: Callable[..., Path]
) -> None:
    library = compile_library(SOURCE).read_bytes()
    for one in (bundle, package):
        recorded = [{"schema": "numbered::numbers() -> ()", "called": False}]
        one.add_library("lib/numbered.so", library, namespaces=["numbered"], operators=recorded)
    # The schema as PyTorch formats it in the classic locale.
    refusal = _loaded(loads_program, bundle)
    schema = refusal.partition("lib/numbered.so has ")[2].partition("; the bundle was made with")[0]
    assert "int n=100000" in schema
    for one in (bundle, package):
        one.say(lambda manifest: manifest["libraries"][1]["operators"][0].update(schema=schema))
        assert _loaded(loads_program, one) == "loaded\n"
        assert _loaded(loads_program, one, "--foreign-locale") == "loaded\n"


def test_numbers_in_messages_do_not_depend_on_the_locale(loads_program: Path, bundle: Bundle) -> None:
    bundle.say(lambda manifest: manifest["inputs"][1].update(dims=[123456]))
    golden = _loaded(loads_program, bundle, "--foreign-locale")
    assert "has the size 3 in dimension 0, in (3); expected 123456, in (123456)" in golden
