"""`opwright ship` reads every manifest that it writes; whatever it accepts, the host accepts, and the reverse."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.bundle.format.read import read_manifest
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.host.conftest import Compiled

HOST = Path(__file__).parents[3] / "src/opwright/host/cpp"
FACTS = {"bytes": 1, "sha256": "0123456789abcdef" * 4}
MANIFEST: dict[str, Any] = {
    "format": 3,
    "opwright": "0.1.0",
    "model": {"file": "model.pt2", "kind": "aoti", "precision": "float32"},
    "torch": {"version": "2.13.0", "oldest": "2.13", "newest": "2.13"},
    "device": "cuda",
    "cpu": {"architecture": "x86_64", "features": ["avx2", "fma"]},
    "cuda": {"architectures": ["9.0"]},
    "libraries": [
        {
            "file": "lib/mine.so",
            "namespaces": ["mine"],
            "oldest": "2.11",
            "newest": None,
            "operators": [{"schema": "mine::f(Tensor x) -> Tensor", "called": True}],
        }
    ],
    "inputs": [
        {
            "name": "image",
            "dtype": "float32",
            "dims": [{"min": 1, "max": 64}, 3, {"min": 8, "max": None}],
            "image": {"resize": 256, "crop": [224, 200], "mean": [0.5, 0, -1], "std": [1, 2.5, 3]},
        },
        {"name": "warp", "dtype": "float64", "dims": [3, 3], "image": None},
    ],
    "equal_dims": [[{"input": "warp", "dim": 0}, {"input": "warp", "dim": 1}]],
    "outputs": [{"name": "output", "dtype": "float32", "dims": [None, 1000]}],
    "tolerance": 0.0001,
    "goldens": ["goldens/0.pt"],
    "host_program": "host/bin/opwright-host",
    "files": dict.fromkeys(("model.pt2", "lib/mine.so", "goldens/0.pt", "host/bin/opwright-host", "model.pt"), FACTS),
}
NUMBERS = [
    *(0, -1, 1, 2, 255, 256, 65536, 65537, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, -(2**63), -(2**63) - 1),
    *(0.0, -0.0, 1.0, 1.5, -1e-300, 5e-324, 1e308, -1e308, float("inf"), float("-inf"), float("nan")),
]
TEXTS = [
    *("", "x", "x" * 255, "x" * 256, "ß" * 127, "ß" * 128, "x" * 65536, "x" * 65537, "a\nb", "\x00", "\x1f", "\x7f"),
    *("\x80", "\x9b2J", "\xa0", "\ud800", "\U0001f600", "2.13", "2.9", "2", "2.13.1", "02.1", "99999.1", "1e1", "-1.2"),
    *("model.pt", "host/x", "../x", "/x", "a//b", "a/", ".", "a\\b", "é.pt", "cpu", "aoti", "0" * 64, "A" * 64),
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
VALUES: st.SearchStrategy[Any] = st.sampled_from([None, True, False, [], {}, *NUMBERS, *TEXTS]) | ANYTHING


@pytest.fixture(scope="module")
def host_accepts(compiled: Compiled) -> Iterator[Callable[[str], bool]]:
    sources: list[str | Path] = [*sorted((HOST / "bundle").glob("*.cpp")), "engine/error.cpp"]
    flags = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
    # The same program as in test_fuzz.py, built once for both.
    program = compiled("fuzz_manifest", [*sources, "tests/fuzz_manifest.cpp"], *flags)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    with subprocess.Popen(
        [program, "--lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        asked, answered = process.stdin, process.stdout
        assert asked
        assert answered

        def accepts(text: str) -> bool:
            print(text, file=asked, flush=True)
            answer = answered.readline().removesuffix("\n")
            assert answer in {"accepted", "manifest_invalid", "format_unknown", "path_outside"}
            return answer == "accepted"

        yield accepts
        asked.close()
        assert process.wait() == 0


def python_accepts(text: str) -> bool:
    try:
        read_manifest(text)
    except BundleError:
        return False
    return True


@st.composite
def changed(draw: st.DrawFn) -> str:
    """The text of a manifest in which one to three values are others, come often, are missing or are new."""
    manifest = copy.deepcopy(MANIFEST)
    for _ in range(draw(st.integers(1, 3))):
        container: Any = manifest
        while True:
            keys = list(container) if isinstance(container, dict) else list(range(len(container)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(container[key], (dict, list)) or not draw(st.integers(0, 4)):
                break
            container = container[key]
        if not keys:
            continue
        what = draw(st.sampled_from(["value", "value", "value", "repeat", "remove", "add"]))
        if what == "value":
            container[key] = draw(VALUES)
        elif what == "remove":
            del container[key]
        elif isinstance(container, dict):
            container[draw(st.sampled_from(TEXTS))] = container[key]
        elif what == "repeat":
            container[:] = [container[key]] * draw(st.sampled_from([0, 2, 3, 64, 65, 4096, 4097]))
        else:
            container.insert(0, draw(VALUES))
    return json.dumps(manifest)


def test_the_manifest_to_begin_with_is_accepted_by_both(host_accepts: Callable[[str], bool]) -> None:
    text = json.dumps(MANIFEST)
    assert python_accepts(text)
    assert host_accepts(text)
    assert host_accepts(" ".join(read_manifest(text).to_json().split("\n")))


@settings(max_examples=1000, deadline=None)
@given(text=changed())
def test_what_ship_accepts_the_host_accepts_and_the_reverse(host_accepts: Callable[[str], bool], text: str) -> None:
    assert python_accepts(text) == host_accepts(text)
