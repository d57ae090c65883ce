"""A bundle that differs from what was shipped is refused with a distinct code and one line, before it runs."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.host.conftest import Bundle, Host, Loads, Refused

FILES = ("goldens/0.pt", "goldens/1.pt", "lib/blended.so", "manifest.json", "manifest.sha256", "model.pt")
POSITIONS = 64
NOWHERE = "expected a folder that `opwright ship` wrote"


def test_the_bundle_itself_is_ok(host: Host, bundle: Bundle) -> None:
    assert [str(path.relative_to(bundle.path)) for path in bundle.files] == list(FILES)
    for folder in (bundle.path, f"{bundle.path}/", bundle.path / ".." / bundle.path.name):
        done = host(folder, "--verify")
        assert (done.returncode, done.stderr) == (0, "")
        assert "is OK: the largest relative deviation from the goldens is " in done.stdout


def test_a_folder_that_is_not_a_bundle_is_refused(loads: Loads, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for name, why in (("nothing", "does not exist"), ("file", "is not a folder")):
        refusal = loads(tmp_path / name)
        assert (refusal.code, refusal.message) == ("bundle_missing", f"the bundle {tmp_path / name} {why}; {NOWHERE}")
    refusal = loads(tmp_path / "empty")
    assert refusal.code == "bundle_missing"
    assert refusal.message.startswith("manifest.json of the bundle")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(loads: Loads, bundle: Bundle, name: str) -> None:
    (bundle.path / name).unlink()
    refusal = loads(bundle.path)
    assert refusal.code == ("bundle_missing" if name == "manifest.json" else "file_missing")
    assert refusal.message.startswith(f"{name} of the bundle {bundle.path} is missing")


@pytest.mark.parametrize("name", ["more.txt", ".hidden", "lib/other.so", "goldens/2.pt", "empty/", "lib/empty/"])
def test_a_file_that_is_not_in_the_manifest_is_named(loads: Loads, bundle: Bundle, name: str) -> None:
    extra = bundle.path / name
    if name.endswith("/"):
        extra.mkdir()
    else:
        extra.touch()
    refusal = loads(bundle.path)
    assert refusal.code == "file_unexpected"
    assert refusal.message.startswith(f"{name.rstrip('/')} of the bundle {bundle.path} is not in its manifest")


def test_a_flipped_bit_anywhere_is_detected(loads: Loads, bundle: Bundle) -> None:
    draw = random.Random(0)
    for path in bundle.files:
        content = path.read_bytes()
        middle = draw.sample(range(1, len(content) - 1), min(POSITIONS, len(content)) - 2)
        for place in (0, *middle, len(content) - 1):
            changed = bytearray(content)
            changed[place] ^= 1 << draw.randrange(8)
            path.write_bytes(changed)
            refusal = loads(bundle.path)
            assert refusal.code == "file_changed", (path.name, place)
            assert ". Copy the bundle again" in refusal.message
        path.write_bytes(content)
    assert loads(bundle.path).code == "loaded"


def test_truncated_files_are_detected(loads: Loads, bundle: Bundle) -> None:
    for path in bundle.files:
        content = path.read_bytes()
        for size in (0, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:size])
            refusal = loads(bundle.path)
            assert refusal.code == "file_changed", (path.name, size)
            if not path.name.startswith("manifest"):
                assert f"has {size} bytes; expected {len(content)}" in refusal.message
        path.write_bytes(content)
    assert loads(bundle.path).code == "loaded"


def test_a_wrong_digest_is_detected(loads: Loads, bundle: Bundle) -> None:
    bundle.say(lambda manifest: manifest["files"]["model.pt"].update(sha256="0" * 64))
    refusal = loads(bundle.path)
    assert refusal.code == "file_changed"
    assert refusal.message.startswith(f"model.pt of the bundle {bundle.path} has the SHA-256 ")
    assert "; expected 000000000000...: it changed after the bundle was shipped" in refusal.message


@pytest.mark.parametrize(
    "path", ["../model.pt", "lib/../../model.pt", "/etc/passwd", "lib//x", "./model.pt", "a b", "a\\b"]
)
def test_a_path_outside_the_folder_is_refused(loads: Loads, bundle: Bundle, path: str) -> None:
    (bundle.path.parent / "model.pt").write_bytes((bundle.path / "model.pt").read_bytes())
    original = json.dumps(bundle.manifest).encode()
    everywhere: dict[str, Callable[[Any], object]] = {
        "model.file": lambda manifest: manifest["model"].update(file=path),
        "libraries[0].file": lambda manifest: manifest["libraries"][0].update(file=path),
        "goldens[1]": lambda manifest: manifest["goldens"].__setitem__(1, path),
        "host_program": lambda manifest: manifest.update(host_program=path),
        'files["': lambda manifest: manifest["files"].update({path: manifest["files"]["model.pt"]}),
    }
    for place, change in everywhere.items():
        bundle.write(original)
        bundle.say(change)
        refusal = loads(bundle.path)
        assert refusal.code == "path_outside", place
        assert refusal.message.startswith(f"manifest.json names the path '{path}' at {place}")
        assert refusal.message.endswith("; expected one inside the bundle, such as lib/ops.so")


@pytest.mark.parametrize("name", [*FILES, "lib"])
def test_a_link_to_the_right_content_is_refused(loads: Loads, bundle: Bundle, name: str) -> None:
    moved = bundle.path.parent / "moved"
    (bundle.path / name).rename(moved)
    (bundle.path / name).symlink_to(moved)
    refusal = loads(bundle.path)
    assert refusal.code == "path_outside"
    assert refusal.message == f"{name} of the bundle {bundle.path} is a link; expected a regular file"


@pytest.mark.parametrize("target", ["/etc/passwd", "model.pt", "nowhere", "."])
def test_an_unlisted_link_is_refused(loads: Loads, bundle: Bundle, target: str) -> None:
    (bundle.path / "lib" / "link").symlink_to(target)
    refusal = loads(bundle.path)
    assert refusal.code == "path_outside"
    assert refusal.message.startswith("lib/link of the bundle")


def test_a_pipe_instead_of_a_file_is_refused_without_reading_it(loads: Loads, bundle: Bundle) -> None:
    for name, code in (("model.pt", "file_unexpected"), ("manifest.json", "bundle_missing")):
        (bundle.path / name).unlink()
        os.mkfifo(bundle.path / name)
        refusal = loads(bundle.path)
        assert refusal.code == code


def _truncated(bundle: Bundle) -> None:
    (bundle.path / "model.pt").write_bytes((bundle.path / "model.pt").read_bytes()[:-1])


# One fault for each code with which a bundle can be refused before its libraries are opened.
REFUSED: dict[str, Callable[[Bundle], object]] = {
    "bundle_missing": lambda bundle: (bundle.path / "manifest.json").unlink(),
    "manifest_invalid": lambda bundle: bundle.write(b'{"a\\nb": 1, "a\\nb": 1}'),
    "format_unknown": lambda bundle: bundle.say(lambda manifest: manifest.update(format=4)),
    "path_outside": lambda bundle: bundle.say(lambda manifest: manifest["model"].update(file="../model.pt")),
    "file_missing": lambda bundle: (bundle.path / "model.pt").unlink(),
    "file_unexpected": lambda bundle: (bundle.path / "more").touch(),
    "file_changed": _truncated,
    "torch_unsupported": lambda bundle: bundle.say(lambda manifest: manifest["torch"].update(oldest="99.0")),
    "cpu_unsupported": lambda bundle: bundle.say(lambda manifest: manifest["cpu"].update(architecture="none")),
    "device_unavailable": lambda bundle: bundle.say(
        lambda manifest: manifest.update(device="cuda", cuda={"architectures": ["1.0"]})
    ),
}


@pytest.mark.parametrize("code", REFUSED)
def test_each_refusal_has_an_exit_code_one_line_and_matching_json(
    host: Host, refused: Refused, bundle: Bundle, code: str
) -> None:
    REFUSED[code](bundle)
    refusal = refused(bundle)
    assert refusal.code == code
    done = host(bundle.path, "--verify", "--json", "-")
    assert done.stderr == f"host: {refusal.message}\n"
    said = json.loads(done.stdout)
    assert said == {"error": {"code": done.returncode, "kind": code, "message": refusal.message}}
