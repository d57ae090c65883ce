"""`opwright cache`: lists the contents of the cache, and prunes them."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opwright.cli.arguments import json_option, size_in_bytes
from opwright.cli.output import stdout, write_json
from opwright.report.format import format_bytes, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from opwright.cache.entries import Entry
    from opwright.cache.prune import Pruned

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
# Parts of libraries. There are many, so they are listed one by one only on request.
_PARTS = {"object", "source"}


def _age(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    if (found := re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)) is None:
        msg = f"{text!r} is not an age: expected a number with a unit, such as 30d, 12h or 2w"
        raise click.BadParameter(msg)
    return float(found[1]) * _UNITS_S[found[2]]


_dry_run = click.option("--dry-run", is_flag=True, help="Remove nothing; print what would be removed.")


@click.group(invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="List objects and inline sources one by one, too.")
@json_option
@click.pass_context
def cache(context: click.Context, *, everything: bool, json: str | None) -> None:
    """List the entries of the build cache, or prune them.

    Prints the size of each kind of entry, then libraries and other large entries, most recently used first: size, last
    use, the PyTorch that they were built for, and their sources. Times are accurate to an hour.

    Builds automatically remove entries that have not been used for 90 days, and the least recently used ones while the
    cache is larger than $OPWRIGHT_CACHE_SIZE (10GB by default). Entries used within the last day are always kept.

    Examples:

        opwright cache

        opwright cache --all --json -

        opwright cache prune --older-than 30d --max-size 5GB --dry-run

        opwright cache clear
    """
    if context.invoked_subcommand is not None:
        return
    from opwright.cache.bound import Bound
    from opwright.cache.cache import Cache

    layers = Cache().entries()
    (root, own), *shared = layers.items()
    bound = Bound.chosen()
    if json is not None:
        result = {
            "path": str(root),
            "size": sum(entry.size for entry in own),
            "bound": {"size": bound.size, "seconds": bound.age_s},
            "entries": [_facts(entry) for entry in own],
            "shared": [{"path": str(path), "entries": [_facts(entry) for entry in held]} for path, held in shared],
        }
        write_json(json, result)
    if json != "-":
        for path, entries in layers.items():
            _print_layer(path, entries, everything=everything)
        limit = "any size" if bound.size is None else format_bytes(bound.size)
        click.echo(f"builds keep at most {limit} in {root}")


@cache.command
@click.option(
    "--older-than", metavar="AGE", callback=_age, help="Remove entries not used for this long, such as 30d or 12h."
)
@click.option(
    "--max-size",
    metavar="SIZE",
    callback=size_in_bytes,
    help="Then remove the least recently used entries down to this size, such as 5GB.",
)
@_dry_run
@json_option
def prune(*, older_than: float | None, max_size: int | None, dry_run: bool, json: str | None) -> None:
    """Remove the least recently used entries.

    Without options, removes what builds would remove automatically. Entries used within the last day are kept, because
    a program may be about to open them. Other builds can run at the same time.

    Examples:

        opwright cache prune

        opwright cache prune --older-than 30d --max-size 5GB --dry-run
    """
    from opwright.cache.bound import Bound
    from opwright.cache.cache import Cache

    given = older_than is not None or max_size is not None
    bound = Bound(max_size, older_than) if given else Bound.chosen()
    _report(Cache().prune(bound, dry_run=dry_run), json, dry_run=dry_run)


@cache.command
@_dry_run
@json_option
def clear(*, dry_run: bool, json: str | None) -> None:
    """Remove all entries, including those in recent use.

    Exits with 7 while a build is in progress. A program that has opened a library can continue to use it; a program
    that is about to open a library may find it missing.

    Examples:

        opwright cache clear
    """
    from opwright.cache.cache import Cache

    _report(Cache().clear(dry_run=dry_run), json, dry_run=dry_run)


def _report(done: Pruned, json: str | None, *, dry_run: bool) -> None:
    freed = sum(entry.size for entry in done.removed)
    if json is not None:
        removed = [_facts(entry) for entry in done.removed]
        write_json(json, {"dry_run": dry_run, "removed": removed, "freed": freed, "size": done.size})
    if json != "-":
        for kind, entries in _kinds(done.removed).items():
            click.echo(f"{'would remove' if dry_run else 'removed'} {_count(kind, entries)}")
        click.echo(f"{format_bytes(done.size)} left, {format_bytes(done.spared)} of it used within the last day")


def _print_layer(root: Path, entries: list[Entry], *, everything: bool) -> None:
    click.echo(f"{root}: {format_bytes(sum(entry.size for entry in entries))}")
    for kind, of_kind in _kinds(entries).items():
        click.echo(f"  {_count(kind, of_kind)}")
    shown = [entry for entry in entries if everything or entry.kind not in _PARTS]
    if shown:
        stdout().print(_table(shown))


def _kinds(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The entries of each kind, the largest kind first."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.kind, []).append(entry)
    return dict(sorted(found.items(), key=lambda one: -sum(entry.size for entry in one[1])))


def _count(kind: str, entries: list[Entry]) -> str:
    return f"{printable(kind)}: {len(entries)}, {format_bytes(sum(entry.size for entry in entries))}"


def _table(entries: list[Entry]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("kind", "name", "size", "last used", "PyTorch", "compiler", "from"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        torch, compiler, source = (entry.about.get(name, "") for name in ("torch", "compiler", "source"))
        used = _ago(time.time() - entry.used_at)
        # As Text, because rich would interpret a name that contains its markup.
        cells = (entry.kind, entry.name, format_bytes(entry.size), used, torch, Path(compiler).name, source)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "< 1 h ago"


def _facts(entry: Entry) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "name": entry.name,
        "path": str(entry.place),
        "size": entry.size,
        "used_at": round(entry.used_at),
        **{name: entry.about.get(name) for name in ("torch", "compiler", "source")},
    }
