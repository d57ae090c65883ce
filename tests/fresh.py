"""Runs what the README promises on a bare Debian, made new in a folder: `make fresh SUITE=trixie`.

It needs root, debootstrap and git, and 10 GB for each of three systems. Each starts with what the README requires, and
contains a clone of the last commit:

- `user`: a plain user, who may use sudo, runs `make demo` and `make test`;
- `root`: root runs the same;
- `install`: the README's second way: `pip install .` in a virtual environment, with nothing pinned, and the rest of the
  session of tests/compatibility.py, with g++ and with clang++.

The systems use the registries of Debian and Python only: of pip's settings, they get those of the machine
(/etc/pip.conf), not those of the user. build/fresh/SUITE keeps the systems, and the output of each command.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BARE = ("ca-certificates", "git", "make", "python3")
USER = "someone"
# What a machine needs to reach the registries, if it lies behind a proxy.
NETWORK = ("/etc/hosts", "/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
LAST_LINES = 12


@dataclass(frozen=True)
class System:
    """One bare system: its name, who works in it, the packages that it starts with, and the commands."""

    name: str
    user: str
    packages: tuple[str, ...]
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of one command."""

    system: str
    command: str
    exit_code: int
    minutes: float
    megabytes: int


def systems(arguments: str) -> list[System]:
    """The three systems; `arguments` follow `make test`."""
    two = ("make demo", f"make test {arguments}".strip())
    listed = [line.split() for line in (ROOT / "setup/system-packages.txt").read_text().splitlines()]
    packages = [words[0] for words in listed if words[1:2] == ["#"] and words[0] != "libopencv-dev"]
    install = "apt-get update && apt-get install -qq -y --no-install-recommends"
    session = "python3 tests/compatibility.py"
    own = (f"{install} {' '.join(packages)}", session, f"{install} clang && {session} --cxx clang++")
    return [
        System("user", USER, (*BARE, "sudo"), two),
        System("root", "root", BARE, two),
        System("install", "root", BARE, own),
    ]


def call(command: list[str | Path], log: Path) -> None:
    """Run a command of this machine; end the program if it fails."""
    with log.open("ab") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))} failed:\n{tail(log)}")


def tail(log: Path) -> str:
    """The last lines of a log."""
    lines = log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
    return "\n".join(f"    {line}" for line in lines[-LAST_LINES:])


def bootstrap(suite: str, system: System, folder: Path) -> Path:
    """Make a bare system with a clone of the last commit, and return its root."""
    place = folder / system.name
    if place.exists():
        shutil.rmtree(place)
    for old in folder.glob(f"{system.name}*.log"):
        old.unlink()
    log = folder / f"{system.name}.log"
    included = f"--include={','.join(system.packages)}"
    call(["debootstrap", "--variant=minbase", included, suite, place], log)
    for path in filter(os.path.exists, NETWORK):
        shutil.copyfile(path, place / path.lstrip("/"))
    # A mirror of testing may lag behind by more than apt accepts.
    (place / "etc/apt/apt.conf.d/any-date").write_text('Acquire::Check-Valid-Until "false";\n')
    if system.user != "root":
        (place / "etc/sudoers.d" / system.user).write_text(f"{system.user} ALL=(ALL) NOPASSWD: ALL\n")
        call(["chroot", place, "useradd", "--create-home", "--shell", "/bin/bash", system.user], log)
    clone = place / home(system).lstrip("/") / "opwright"
    call(["git", "-c", "safe.directory=*", "clone", "-q", "--no-hardlinks", f"file://{ROOT}", clone], log)
    call(["chroot", place, "chown", "-R", f"{system.user}:", f"{home(system)}/opwright"], log)
    return place


def home(system: System) -> str:
    """The home of the user who works in the system."""
    return "/root" if system.user == "root" else f"/home/{system.user}"


def run(system: System, place: Path, command: str, log: Path) -> int:
    """Run a command in a system, in the clone, with a new environment; return its exit code."""
    path = "/usr/local/bin:/usr/bin:/bin" + (":/usr/sbin:/sbin" if system.user == "root" else "")
    variables = {"HOME": home(system), "LANG": "C.UTF-8", "PATH": path}
    variables |= {name: os.environ[name] for name in PROXIES if name in os.environ}
    words = [f"{name}={value}" for name, value in variables.items()]
    inside = ["chroot", f"--userspec={system.user}", str(place), "env", "-i", *words]
    # The first mount makes the folder a file system of its own, which programs look for in the list of mounts.
    mounts = [
        ["--bind", ".", "."],
        ["-t", "proc", "proc", "proc"],
        ["--rbind", "/sys", "sys"],
        ["--rbind", "/dev", "dev"],
    ]
    script = " && ".join(
        [
            *(f"cd {shlex.quote(str(place))} && mount {shlex.join(mount)}" for mount in mounts),
            f"exec {shlex.join(inside)} bash -c {shlex.quote(f'cd ~/opwright && {command}')}",
        ]
    )
    # The mounts and the processes end with the namespaces, so that the folder can be removed at any time.
    own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]
    with log.open("ab") as output:
        return subprocess.run(
            own, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode


def megabytes(place: Path) -> int:
    """The size of a system."""
    said = subprocess.run(["du", "-smx", place], capture_output=True, text=True, check=False).stdout
    return int(said.split()[0])


def attempt(system: System, suite: str, folder: Path) -> list[Outcome]:
    """Make a system, and run its commands, each regardless of the others."""
    print(f"{suite}, {system.name}: debootstrap", flush=True)
    place = bootstrap(suite, system, folder)
    outcomes = []
    for number, command in enumerate(system.commands, start=1):
        log = folder / f"{system.name}-{number}.log"
        print(f"{suite}, {system.name}: {command}  (output in {log})", flush=True)
        before, started = megabytes(place), time.monotonic()
        exit_code = run(system, place, command, log)
        minutes = (time.monotonic() - started) / 60
        outcomes.append(Outcome(system.name, command, exit_code, minutes, megabytes(place) - before))
        print(f"    exit code {exit_code} after {minutes:.1f} min\n{tail(log)}", flush=True)
    return outcomes


def main() -> int:
    """Run all systems, print a table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", help="a release of Debian, such as bookworm, trixie or testing")
    parser.add_argument("--only", nargs="*", help="names of systems (default: user, root and install)")
    parser.add_argument("--test", default="", help="arguments of `make test`, such as 'ARGS=\"-k schema\"'")
    given = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        sys.exit("make fresh requires root and debootstrap: as root, apt-get install debootstrap, and run it again")
    folder = ROOT / "build/fresh" / given.suite
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in systems(given.test) if not given.only or one.name in given.only]
    outcomes = [outcome for system in chosen for outcome in attempt(system, given.suite, folder)]
    print(f"\n{'system':<9}{'exit code':>10}{'minutes':>9}{'MB added':>10}  command")
    for one in outcomes:
        print(f"{one.system:<9}{one.exit_code:>10}{one.minutes:>9.1f}{one.megabytes:>10}  {one.command}")
    print(f"The systems and their logs are in {folder}.")
    return int(any(outcome.exit_code != 0 for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
