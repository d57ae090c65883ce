"""The exit codes of the host: a single list in its public header, repeated exactly in the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opwright import errors

ROOT = Path(__file__).parents[2]
HOST = ROOT / "src/opwright/host/cpp"
HEADER = HOST / "include/opwright/host/error.h"


def codes_of(header: str) -> list[tuple[int, str]]:
    """Returns the number and the name of each enumerator of `Code`, in order."""
    (body,) = re.findall(r"enum class Code : int \{(.*?)\};", header, flags=re.DOTALL)
    assert not re.sub(r"\w+ = \d+,", "", body).strip(), "each code is written as `name = number,`"
    return [(int(number), name) for name, number in re.findall(r"(\w+) = (\d+),", body)]


def rows_of(page: str) -> list[tuple[int, str]]:
    """Returns the number and the name of each row of the table of exit codes."""
    section = page.split("## Exit codes of the host\n")[1].split("\n## ", maxsplit=1)[0]
    return [(int(number), name) for number, name in re.findall(r"^\| (\d+) \| `(\w+)` \|", section, re.MULTILINE)]


PAGE = (ROOT / "docs/reference/exit_codes.md").read_text(encoding="utf-8")
CODES = codes_of(HEADER.read_text(encoding="utf-8"))


def test_the_page_on_the_host_has_a_row_for_each_code_in_their_order() -> None:
    assert rows_of(PAGE) == CODES


def test_each_row_says_what_the_code_means_and_what_to_do() -> None:
    rows = re.findall(r"^\| \d+ \| `(\w+)` \| ([^|]*) \| ([^|]*) \|$", PAGE, re.MULTILINE)
    assert [name for name, meaning, fix in rows if meaning.strip() and fix.strip()] == [name for _, name in CODES]


def test_each_code_has_the_name_of_its_enumerator() -> None:
    source = (HOST / "engine/error.cpp").read_text(encoding="utf-8")
    called = re.findall(r"case Code::(\w+):\s+return \"(\w+)\";", source)
    assert called == [(name, name) for _, name in CODES]


def test_codes_are_unique_and_those_of_the_host_form_a_range() -> None:
    numbers = [number for number, _ in CODES]
    assert len(set(numbers)) == len(numbers)
    assert numbers == sorted(numbers)
    own = [number for number in numbers if number > 2]
    help_text = (HOST / "program/options.cpp").read_text("utf-8")
    (told,) = re.findall(r"(\d+) to (\d+) as docs/reference/exit_codes.md", help_text)
    assert (min(own), max(own)) == tuple(map(int, told))


def test_the_host_and_the_command_line_share_no_codes() -> None:
    # `opwright run` exits with either: before the host has started, and after that.
    tree = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    of_python = {error.exit_code for error in tree if issubclass(error, errors.OpwrightError)}
    assert {1, 8} <= of_python
    assert of_python & {number for number, _ in CODES} == {1}


@pytest.mark.parametrize("change", ["drop", "renumber", "rename", "swap"])
def test_the_law_detects_a_table_that_differs(change: str) -> None:
    lines = [f"| {number} | `{name}` | it means | do |" for number, name in CODES]
    if change == "drop":
        del lines[3]
    if change == "renumber":
        lines[3] = lines[3].replace(str(CODES[3][0]), "99", 1)
    if change == "rename":
        lines[3] = lines[3].replace(CODES[3][1], "other")
    if change == "swap":
        lines[3], lines[4] = lines[4], lines[3]
    table = "\n".join(lines)
    assert rows_of(f"## Exit codes of the host\n{table}\n## Next\n") != CODES


def test_the_page_has_a_row_for_each_class_of_errors_of_the_commands() -> None:
    table = PAGE.split("## Exit codes of the host\n")[0]
    rows = {(int(code), name) for code, name in re.findall(r"^\| (\d+) \| `(\w+)` \|", table, re.MULTILINE)}
    values = [value for value in vars(errors).values() if isinstance(value, type)]
    tree = [value for value in values if issubclass(value, errors.OpwrightError)]
    # A subclass that sets no code, such as SignatureError, has the code of its base.
    assert rows == {(error.exit_code, error.__name__) for error in tree if "exit_code" in vars(error)}
