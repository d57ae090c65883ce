from __future__ import annotations

import pytest

from opwright.bundle.format.names import check_name, check_path
from opwright.errors import BundleError


@pytest.mark.parametrize(
    "path", ["model.pt", "lib/my_ops.so", "goldens/0.pt", "host/lib/libstdc++.so.6", "a-b/..c", "a" * 255]
)
def test_a_path_inside_the_bundle_is_accepted(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "a/../b",
        "./a",
        "a//b",
        "a/",
        "a b",
        "a\\b",
        "a\0b",
        "a\n",
        "é.pt",
        "a:b",
        "~",
        "a" * 256,
    ],
)
def test_any_other_path_is_rejected(path: str) -> None:
    with pytest.raises(BundleError, match="cannot be in a bundle: expected a path inside the bundle"):
        check_path(path)


@pytest.mark.parametrize("name", ["x", "image", "scores.top 5", "größe", "x" * 255])
def test_any_printable_text_is_a_name(name: str) -> None:
    check_name(name, "it")


@pytest.mark.parametrize("name", ["", "x" * 256, "ß" * 128, "a\tb", "a\0", "\x7f", "\x9f", "\ud800"])
def test_a_name_with_too_few_or_too_many_bytes_or_with_control_characters_is_rejected(name: str) -> None:
    with pytest.raises(BundleError, match=r"it is .*: expected 1 to 255 bytes of text without control characters"):
        check_name(name, "it")
