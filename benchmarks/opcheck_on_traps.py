"""Compares how many operators with a planted fault `torch.library.opcheck` and `opwright check` catch.

    python benchmarks/opcheck_on_traps.py [--trap NAME] [--opcheck-only] [--json FILE]

The operators are those of tests/packages/traps, whose expected.json names the fault of each. opcheck runs on every
operator of a library with every sample of its author, unchanged and, if the operator mutates nothing, with
floating-point inputs that require grad. It catches a trap if it raises, or the process dies or times out. It first runs
on the repaired twin, which it must accept: otherwise its objection is unrelated to the fault, and does not count.
`opwright check` gets only the folder, with `--quick` unless expected.json requests a full check. It catches a trap if
it reports one of the kinds in expected.json (if a trap has several faults, all of them).

Each runs in a separate process, so that a crash affects one line of the table.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opcheck import ended, opcheck

TRAPS = Path(__file__).resolve().parents[1] / "tests" / "packages" / "traps"


@dataclass(frozen=True)
class Verdict:
    """The verdict of one tool on a trap.

    Attributes:
        caught: whether it detected the fault.
        summary: its output, in a few words.
    """

    caught: bool
    summary: str


def main() -> None:
    """Run both tools on each trap and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trap", metavar="NAME", action="append", help="only this trap; repeat for several")
    parser.add_argument("--opcheck-only", action="store_true", help="do not run opwright check")
    parser.add_argument("--json", metavar="FILE", help="write all verdicts as JSON")
    arguments = parser.parse_args()
    expected: dict[str, dict[str, Any]] = json.loads((TRAPS / "expected.json").read_text(encoding="utf-8"))
    if unknown := set(arguments.trap or ()) - set(expected):
        sys.exit(f"unknown trap {', '.join(sorted(unknown))}: expected names among {', '.join(expected)}")
    judges = {"opcheck": opcheck_verdict} | ({} if arguments.opcheck_only else {"opwright check": opwright_check})
    table: dict[str, dict[str, Verdict]] = {}
    for name in arguments.trap or expected:
        table[name] = {judge: run(TRAPS / name, expected[name]) for judge, run in judges.items()}
        print(f"{name}: {', '.join(map(one_line, table[name].items()))}", file=sys.stderr)
    show(table, expected)
    if arguments.json:
        rows = {
            name: expected[name] | {judge: asdict(verdict) for judge, verdict in verdicts.items()}
            for name, verdicts in table.items()
        }
        Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def opcheck_verdict(folder: Path, expected: dict[str, Any]) -> Verdict:
    """The verdict of `torch.library.opcheck` on the library in `folder`."""
    builds = {build: opcheck(folder, _environment(build)) for build in ("repaired", "faulty")}
    if builds["repaired"].code != 0:
        return Verdict(caught=False, summary=f"objects to the repaired twin too: {builds['repaired'].summary}")
    return Verdict(caught=builds["faulty"].code != 0, summary=builds["faulty"].summary)


def opwright_check(folder: Path, expected: dict[str, Any]) -> Verdict:
    """The verdict of `opwright check` on the library in `folder`."""
    extent = [] if expected.get("full") else ["--quick"]
    command = [sys.executable, "-m", "opwright", "check", str(folder), *extent, "--json", "-"]
    done = ended(command, _environment("faulty"))
    try:
        report = json.loads(done.text)
    except json.JSONDecodeError:
        return Verdict(caught=False, summary=f"no report: {done.summary}")
    failures = [*report["failures"], *(failure for cell in report["cells"] for failure in cell["failures"])]
    found = list(dict.fromkeys(failure["kind"] for failure in failures))
    wanted = [kind in found for kind in expected["kind"]]
    return Verdict(caught=all(wanted) if expected.get("all") else any(wanted), summary=", ".join(found) or "passed")


def show(table: dict[str, dict[str, Verdict]], expected: dict[str, dict[str, Any]]) -> None:
    """Print the table of traps and verdicts."""
    judges = list(next(iter(table.values())))
    rows = [("trap", "planted fault", *judges)]
    for name, verdicts in table.items():
        kinds = (" and " if expected[name].get("all") else " or ").join(expected[name]["kind"])
        rows.append((name, kinds, *("caught" if verdicts[judge].caught else "-" for judge in judges)))
    counts = [f"{sum(verdicts[judge].caught for verdicts in table.values())} of {len(table)}" for judge in judges]
    rows.append(("caught", "", *counts))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())


def one_line(verdict: tuple[str, Verdict]) -> str:
    """One verdict as a line."""
    return f"{verdict[0]} {'caught it' if verdict[1].caught else 'did not'} ({verdict[1].summary})"


def _environment(build: str) -> dict[str, str]:
    return {**os.environ, "OPWRIGHT_TRAP": build}


if __name__ == "__main__":
    main()
