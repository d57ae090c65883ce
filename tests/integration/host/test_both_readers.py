"""`opwright ship` reads every manifest that it writes; whatever it accepts, the host accepts, and the reverse."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.bundle.format.read import read_manifest
from opwright.errors import BundleError
from tests.fuzz.seeds import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.sample(of="long", by="file")

NUMBERS = [
    *(0, -1, 1, 2, 255, 256, 65536, 65537, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, -(2**63), -(2**63) - 1),
    *(0.0, -0.0, 1.0, 1.5, -1e-300, 5e-324, 1e308, -1e308, float("inf"), float("-inf"), float("nan")),
]
TEXTS = [
    *("", "x", "x" * 255, "x" * 256, "ß" * 127, "ß" * 128, "x" * 65536, "x" * 65537, "a\nb", "\x00", "\x1f", "\x7f"),
    *("\x80", "\x9b2J", "\xa0", "\ud800", "\U0001f600", "2.13", "2.9", "2", "2.13.1", "02.1", "99999.1", "1e1", "-1.2"),
    *("9.0+PTX", "9.0+ptx", "+PTX", "9+PTX", "9.0+PTX+PTX"),
    *("model.pt", "host/x", "../x", "/x", "a//b", "a/", ".", "a\\b", "é.pt", "cpu", "aoti", "0" * 64, "A" * 64),
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
VALUES: st.SearchStrategy[Any] = st.sampled_from([None, True, False, [], {}, *NUMBERS, *TEXTS]) | ANYTHING


@pytest.fixture(scope="module")
def host_accepts(replay: Path) -> Iterator[Callable[[str], bool]]:
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    with subprocess.Popen(
        [replay, "--lines", "manifest"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
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
    """Draw the text of a manifest in which one to three values are changed, repeated, removed or added."""
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


def test_both_readers_accept_the_original_manifest(host_accepts: Callable[[str], bool]) -> None:
    text = json.dumps(MANIFEST)
    assert python_accepts(text)
    assert host_accepts(text)
    assert host_accepts(" ".join(read_manifest(text).to_json().split("\n")))


@settings(max_examples=1000, deadline=None)
@given(text=changed())
def test_ship_and_the_host_accept_the_same_manifests(host_accepts: Callable[[str], bool], text: str) -> None:
    assert python_accepts(text) == host_accepts(text)
