from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.checker.kinds import Kind
from opwright.checker.report.github import fault_annotations
from opwright.checker.report.junit import junit
from opwright.checker.verdict import Failure

if TYPE_CHECKING:
    from opwright.checker.verdict import Report
    from tests.unit.conftest import Describe


def suites(report: Report) -> ET.Element:
    return ET.fromstring(junit(report))


def test_each_cell_is_a_test(report: Report) -> None:
    (suite,) = suites(report)
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "skipped", "errors")}
    assert counts == {"tests": 22, "failures": 3, "skipped": 6, "errors": 0}
    names = {(case.attrib["classname"], case.attrib["name"]) for case in suite}
    assert {("mine.scale", "eager"), ("mine.shift", "host-aoti")} <= names


def test_a_failed_cell_contains_its_faults(report: Report) -> None:
    (suite,) = suites(report)
    failure = next(iter(suite)).find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "ignored-strides"
    assert "(ignored-strides); " in failure.attrib["message"]
    text = failure.text or ""
    assert "case: x transposed, in eager" in text
    assert '    mine = opwright.open("ops/mine")' in text
    assert "got: [0, 1, 2]\nexpected: [0, 3, 1]" in text


def test_a_cell_that_was_not_run_is_skipped_with_its_reason(report: Report) -> None:
    (suite,) = suites(report)
    reasons = {case.attrib["name"]: found.attrib["message"] for case in suite for found in case.findall("skipped")}
    assert reasons["vmap"] == "not applicable: the operator does not claim it"
    assert reasons["host-linked"] == "not run: no C++ compiler"


def test_a_library_that_does_not_build_is_a_failed_test(report: Report) -> None:
    broken = dataclasses.replace(report, cells=(), failures=(Failure(Kind.BUILD, got="cpu.cpp does not compile"),))
    (suite,) = suites(broken)
    (case,) = suite
    assert (case.attrib["classname"], case.attrib["name"]) == ("mine", "build")
    assert suite.attrib["failures"] == "1"


def test_characters_that_xml_does_not_allow_are_escaped(report: Report) -> None:
    odd = dataclasses.replace(report, cells=(), failures=(Failure(Kind.BUILD, got="\x1b[31m & <b> \ud800"),))
    (suite,) = suites(odd)
    assert r"got: \x1b[31m & <b> \ud800" in (suite[0][0].text or "")


def test_each_fault_is_an_annotation_at_its_reference(
    report: Report, describe: Describe, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = describe("\n@library.op\ndef scale(x: Tensor) -> Tensor:\n    return x\n")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(library.root))
    lines = list(fault_annotations(report, library))
    line = library.ops["scale"].reference.__code__.co_firstlineno
    start = f"::error file=op.py,line={line},title=scale in eager%3A "
    assert len(lines) == 2
    assert all(one.startswith(start) and "\n" not in one for one in lines)
    assert "%0Agot: [0, 1, 2]%0Aexpected: [0, 3, 1]%0A" in lines[0]


def test_an_annotation_cannot_start_another_one(report: Report) -> None:
    hostile = Failure(Kind.BUILD, got="100%\n::error::forged, again: yes")
    broken = dataclasses.replace(report, cells=(), failures=(hostile,))
    (line,) = fault_annotations(broken, opwright.Library("mine"))
    assert "got: 100%25%0A::error::forged, again: yes" in line
    assert line.count("\n") == 0
