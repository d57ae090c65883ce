"""Measures the mutation score of the unit tests of a package: how many small changes to its code they notice.

    pip install cosmic-ray
    python benchmarks/mutation_score.py [--count N] [--seed N] [--json FILE] PACKAGE...

A package is a folder of src/opwright/, such as cache or bundle/format; its tests are those in the folder of the same
name in tests/unit/. cosmic-ray lists all mutants of the package, and N of them, chosen by the seed, are tested in a
copy of the clone, with the tests of the working tree. The same seed chooses the same mutants as long as the package
does not change. Packages are tested in parallel.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = """
[cosmic-ray]
module-path = "src/opwright/{package}"
timeout = {timeout}
excluded-modules = []
test-command = "{python} -m pytest -x -q -p no:cacheprovider -m 'not compiles' tests/unit/{package}"
[cosmic-ray.distributor]
name = "local"
"""
MUTANTS = """
SELECT module_path, operator_name, operator_args, occurrence, start_pos_row, start_pos_col, job_id FROM mutation_specs
"""
LEAVE_OUT = ("DELETE FROM mutation_specs WHERE job_id = ?", "DELETE FROM work_items WHERE job_id = ?")
# A mutant that runs longer than this does not end, in seconds.
LIMIT = 100.0


def main() -> None:
    """Test the packages, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--count", type=int, default=100, help="mutants of each package (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="determines which mutants are chosen (default: 0)")
    parser.add_argument("--json", metavar="FILE", help="write the mutants that no test notices, as JSON")
    arguments = parser.parse_args()
    if (program := shutil.which("cosmic-ray")) is None:
        sys.exit("cosmic-ray is not installed: pip install cosmic-ray")
    for package in arguments.packages:
        if not (ROOT / "src/opwright" / package).is_dir() or not (ROOT / "tests/unit" / package).is_dir():
            sys.exit(f"{package} is not a folder of both src/opwright and tests/unit; name one such as cache")
    test = partial(survivors, program=program, count=arguments.count, seed=arguments.seed)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = dict(zip(arguments.packages, pool.map(test, arguments.packages), strict=True))
    print(f"{'noticed':>9}  package")
    for package, (tested, missed) in found.items():
        print(f"{tested - len(missed):4} / {tested:<3} {package}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({package: missed for package, (_, missed) in found.items()}))


def survivors(package: str, *, program: str, count: int, seed: int) -> tuple[int, list[str]]:
    """The number of mutants of a package that were tested, and those that no test notices, as diffs."""
    with TemporaryDirectory() as folder:
        clone, configuration, session = Path(folder) / "clone", Path(folder) / "mutants.toml", Path(folder) / "session"
        shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(".*", "build", "__pycache__"))
        configuration.write_text(CONFIGURATION.format(package=package, python=sys.executable, timeout=LIMIT))
        environment = {
            **os.environ,
            "PYTHONPATH": f"{clone}/src",  # before the installed package
            "PYTHONDONTWRITEBYTECODE": "1",  # a mutant can have the size and the time of the file that it replaces
            "OPWRIGHT_CACHE": f"{folder}/cache",
        }

        def cosmic_ray(*words: str | Path) -> None:
            subprocess.run([program, *words], cwd=clone, env=environment, check=True)

        cosmic_ray("baseline", configuration)
        cosmic_ray("init", configuration, session)
        with sqlite3.connect(session) as database:
            mutants = sorted(database.execute(MUTANTS))
            # Annotations, which nothing evaluates, contain most of the operators |.
            evaluated = [mutant for mutant in mutants if "BitOr" not in mutant[1]]
            kept = random.Random(seed).sample(evaluated, min(count, len(evaluated)))
            for statement in LEAVE_OUT:
                database.executemany(statement, [(mutant[-1],) for mutant in {*mutants} - {*kept}])
        cosmic_ray("exec", configuration, session)
        with sqlite3.connect(session) as database:
            results = database.execute("SELECT test_outcome, diff FROM work_results").fetchall()
    outcomes = Counter(str(outcome).rpartition(".")[2].lower() for outcome, _ in results)
    if unknown := outcomes.keys() - {"killed", "survived"}:
        sys.exit(f"{package}: cosmic-ray reports {', '.join(sorted(unknown))}")
    return len(results), [diff for outcome, diff in results if str(outcome).lower().endswith("survived")]


if __name__ == "__main__":
    main()
