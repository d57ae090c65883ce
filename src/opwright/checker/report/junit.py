"""The report of a check as JUnit XML, which CI services display as tests."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from opwright.checker.report.digest import UNRUN, short
from opwright.checker.report.text import failure_text
from opwright.report.format import printable

if TYPE_CHECKING:
    from opwright.checker.verdict import Cell, Failure, Report


def junit(report: Report) -> str:
    """Return the report as a JUnit file: a test for each cell, and one for each fault of the library as a whole."""
    suite = ET.Element("testsuite", name=f"opwright check {report.namespace}", time=f"{report.seconds:.3f}")
    for failure in report.failures:
        case = _case(suite, report.namespace, failure.kind.value, 0.0)
        _add_failures(case, (failure,))
    for cell in report.cells:
        _add_cell(suite, report, cell)
    cases = list(suite)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
    suite.set("errors", "0")
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _add_cell(suite: ET.Element, report: Report, cell: Cell) -> None:
    devices = {other.device for other in report.cells}
    name = f"{cell.runtime} on {cell.device}" if len(devices) > 1 else cell.runtime
    case = _case(suite, f"{report.namespace}.{short(report, cell.op)}", name, cell.seconds)
    if cell.status in UNRUN:
        ET.SubElement(case, "skipped", message=_text(f"{cell.status}: {cell.reason}"))
    _add_failures(case, cell.failures)


def _case(suite: ET.Element, classname: str, name: str, seconds: float) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=classname, name=name, time=f"{seconds:.3f}")


def _add_failures(case: ET.Element, failures: tuple[Failure, ...]) -> None:
    if not failures:
        return
    title = "; ".join(f"{failure.kind.diagnosis.title} ({failure.kind.value})" for failure in failures)
    element = ET.SubElement(case, "failure", type=failures[0].kind.value, message=_text(title))
    element.text = _text("\n\n".join(map(failure_text, failures)))


def _text(text: str) -> str:
    """Text in characters that XML allows."""
    return printable(text)
