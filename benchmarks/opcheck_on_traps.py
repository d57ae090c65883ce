"""Of operators with one planted fault each, how many does `torch.library.opcheck` catch, and how many `opwright check`?

    python benchmarks/opcheck_on_traps.py [--trap NAME] [--opcheck-only] [--json FILE]

The operators are those of tests/packages/traps, whose expected.json says what is wrong with each. opcheck gets every
operator of a library with every sample of its author, as it is and with floating inputs that require gradients. It
catches a trap if it raises, or the process dies or does not end. First it gets the repaired twin, to which it must not
object: else its objection is not to the fault, and does not count. `opwright check --quick` gets the folder and
nothing else, and catches a trap if one of the kinds in expected.json is among the faults that it names (where a trap
has several faults, if all are).

Each of them runs in a process of its own, so that a crash costs a line of the table and not the table.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

TRAPS = Path(__file__).resolve().parents[1] / "tests" / "packages" / "traps"
SECONDS = 300

# Runs in a process of its own: the folder of a library goes in, the first objection comes out.
OPCHECK = """
import sys
import torch
from torch.utils import _pytree as pytree
import opwright
from opwright import BuildError, Make

def with_grad(tensor):
    return tensor.detach().clone().requires_grad_() if tensor.is_floating_point() else tensor

try:
    library = opwright.open(sys.argv[1])
except BuildError:
    print("not built")
    sys.exit()
for op in library.library.ops.values():
    overload = getattr(library.ops, op.name).default
    for sample in op.draw(Make()):
        args, kwargs = op.spread(op.bind(sample))
        for given in (args, pytree.tree_map_only(torch.Tensor, with_grad, args)):
            try:
                torch.library.opcheck(overload, tuple(given), kwargs)
            except Exception as error:
                print(f"{type(error).__name__}:", " ".join(str(error).split())[:200])
                sys.exit(1)
"""


@dataclass(frozen=True)
class Verdict:
    """What one of the two says of a trap.

    Attributes:
        caught: whether it found the fault.
        said: what it said, in a few words.
    """

    caught: bool
    said: str


def main() -> None:
    """Ask both about each trap, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trap", metavar="NAME", action="append", help="only this one; may be given again")
    parser.add_argument("--opcheck-only", action="store_true", help="leave opwright check out")
    parser.add_argument("--json", metavar="FILE", help="write every verdict as JSON")
    asked = parser.parse_args()
    expected: dict[str, dict[str, Any]] = json.loads((TRAPS / "expected.json").read_text(encoding="utf-8"))
    if unknown := set(asked.trap or ()) - set(expected):
        sys.exit(f"there is no trap {', '.join(sorted(unknown))}: expected some of {', '.join(expected)}")
    askers = {"opcheck": opcheck} | ({} if asked.opcheck_only else {"opwright check": opwright_check})
    table: dict[str, dict[str, Verdict]] = {}
    for name in asked.trap or expected:
        table[name] = {asker: ask(TRAPS / name, expected[name]) for asker, ask in askers.items()}
        print(f"{name}: {', '.join(map(told, table[name].items()))}", file=sys.stderr)
    show(table, expected)
    if asked.json:
        rows = {
            name: expected[name] | {asker: asdict(verdict) for asker, verdict in verdicts.items()}
            for name, verdicts in table.items()
        }
        Path(asked.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def opcheck(folder: Path, expected: dict[str, Any]) -> Verdict:
    """What `torch.library.opcheck` says of the library in `folder`."""
    said = {build: _outcome([sys.executable, "-c", OPCHECK, str(folder)], build) for build in ("repaired", "faulty")}
    if said["repaired"][0] != 0:
        return Verdict(caught=False, said=f"objects to the repaired twin too: {_in_words(*said['repaired'])}")
    code, text = said["faulty"]
    return Verdict(caught=code != 0, said=_in_words(code, text))


def opwright_check(folder: Path, expected: dict[str, Any]) -> Verdict:
    """What `opwright check` says of the library in `folder`."""
    code, text = _outcome([sys.executable, "-m", "opwright", "check", str(folder), "--quick", "--json", "-"], "faulty")
    try:
        report = json.loads(text)
    except json.JSONDecodeError:
        return Verdict(caught=False, said=f"no report: {_in_words(code, text)}")
    failures = [*report["failures"], *(failure for cell in report["cells"] for failure in cell["failures"])]
    found = list(dict.fromkeys(failure["kind"] for failure in failures))
    wanted = [kind in found for kind in expected["kind"]]
    return Verdict(caught=all(wanted) if expected.get("all") else any(wanted), said=", ".join(found) or "passed")


def show(table: dict[str, dict[str, Verdict]], expected: dict[str, dict[str, Any]]) -> None:
    """Print who caught what."""
    askers = list(next(iter(table.values())))
    rows = [("trap", "planted fault", *askers)]
    for name, verdicts in table.items():
        kinds = (" and " if expected[name].get("all") else " or ").join(expected[name]["kind"])
        rows.append((name, kinds, *("caught" if verdicts[asker].caught else "-" for asker in askers)))
    counts = [f"{sum(verdicts[asker].caught for verdicts in table.values())} of {len(table)}" for asker in askers]
    rows.append(("caught", "", *counts))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())


def told(verdict: tuple[str, Verdict]) -> str:
    """One verdict in a line."""
    return f"{verdict[0]} {'caught it' if verdict[1].caught else 'did not'} ({verdict[1].said})"


def _outcome(command: Sequence[str], build: str) -> tuple[int, str]:
    """The exit code and the standard output of a program; a negative code is a signal, 124 says that it did not end."""
    environment = {**os.environ, "OPWRIGHT_TRAP": build}
    try:
        ended = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, ""
    return ended.returncode, ended.stdout.strip()


def _in_words(code: int, text: str) -> str:
    if code < 0:
        return f"the process died of {signal.Signals(-code).name}"
    return text or {0: "passed", 124: f"did not end in {SECONDS} s"}.get(code, f"exit code {code}")


if __name__ == "__main__":
    main()
