"""`opwright map`: runs a bundle over many inputs."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

import click

from opwright.cli.arguments import bundle_argument, report_json_option, size_in_bytes
from opwright.cli.output import stderr, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

    from opwright.scale.summary import MapSummary

_AT_LEAST_ONE = click.IntRange(min=1)
_INTERRUPTED = 130  # a shell's exit code for Ctrl-C


def _columns(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    named: dict[str, str] = {}
    for text in given:
        name, sign, column = text.partition("=")
        if not sign or not name or not column or name in named:
            msg = f"{text!r} is not INPUT=COLUMN for another input; expected for example image=jpeg"
            raise click.BadParameter(msg)
        named[name] = column
    return named


@click.command
@bundle_argument
@click.argument("inputs", nargs=-1)
@click.option("--output", "-o", metavar="OUT", required=True, help="Folder for the results, or an fsspec URL.")
@click.option("--resume", is_flag=True, help="Complete an earlier, interrupted run of the same map.")
@click.option(
    "--batch", metavar="N", type=_AT_LEAST_ONE, default=1, show_default=True, help="Number of inputs in one run."
)
@click.option(
    "--column",
    "columns",
    metavar="INPUT=COLUMN",
    multiple=True,
    callback=_columns,
    help="Column of an input in Parquet files, by default the one with the input's name; repeat for more.",
)
@click.option(
    "--on",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where the hosts run: on this machine, or on a Ray cluster.",
)
@click.option(
    "--address",
    metavar="ADDRESS",
    help="Address of the Ray cluster; by default a cluster on this machine, which is started if necessary.",
)
@click.option(
    "--workers",
    metavar="N",
    type=_AT_LEAST_ONE,
    help="Number of concurrent hosts; by default one per processor or GPU.",
)
@click.option(
    "--threads",
    metavar="N",
    type=_AT_LEAST_ONE,
    default=1,
    show_default=True,
    help="Threads per run of the model.",
)
@click.option("--strict", is_flag=True, help="Stop at the first input that fails.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Kill a host that does not answer within this time.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    callback=size_in_bytes,
    help="Memory limit of a host, such as 4GB; by default its share of the machine's memory.",
)
@click.option("--shard-rows", metavar="N", type=_AT_LEAST_ONE, help="Rows per result file; by default up to 1,000.")
@report_json_option
def map(
    bundle: Path,
    inputs: tuple[str, ...],
    *,
    output: str,
    resume: bool,
    batch: int,
    columns: dict[str, str],
    on: str,
    address: str | None,
    workers: int | None,
    threads: int,
    strict: bool,
    timeout: float | None,
    memory: int | None,
    shard_rows: int | None,
    json: str | None,
) -> None:
    """Run a bundle on many inputs, each exactly once, and write a table.

    BUNDLE is a folder that `opwright ship` wrote. INPUTS are image, .npy and .npz files; folders with such files; glob
    patterns; lists (a .txt with a path on each line, or a .jsonl with requests); Parquet files whose rows are inputs;
    and fsspec URLs. OUT becomes a folder of Parquet files with one row per input, in the order of the inputs. Its
    columns are id, input, status, error, and the outputs. An input that fails becomes a row with the error.

    --resume continues a map that was interrupted or killed; the result equals that of an uninterrupted one.

    Examples:

        opwright map my_bundle photos/ -o results

        opwright map my_bundle 'photos/**/*.jpg' -o results --batch 16

        opwright map my_bundle a.parquet --column image=jpeg -o s3://bucket/out

        opwright map my_bundle photos/ -o /shared/out --on ray --address auto

        opwright map my_bundle -o results --resume
    """
    import logging

    from opwright.scale.map import map as map_inputs
    from opwright.scale.progress import MapProgress

    # Clients of object stores leave tasks pending when a server disconnects. The error itself is raised too.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with _ended_by_signals(), MapProgress(output, stderr()) as progress:
        try:
            summary = map_inputs(
                bundle,
                inputs or None,
                output=output,
                on=on,
                address=address,
                workers=workers,
                threads=threads,
                batch=batch,
                columns=columns,
                shard_rows=shard_rows,
                memory=memory,
                timeout_s=timeout,
                strict=strict,
                resume=resume,
                progress=progress,
            )
        except KeyboardInterrupt:
            progress.end()
            advice = "Run the same command with --resume to continue" if progress.has_begun else "Nothing was written"
            click.echo(f"interrupted: {progress.line()}. {advice}", err=True)
            click.get_current_context().exit(_INTERRUPTED)
    if json is not None:
        write_json(json, summary.to_builtins())
    if json != "-":
        _show(summary)


def _show(summary: MapSummary) -> None:
    from opwright.report.format import duration, format_seconds, three_figures

    done = summary.inputs - summary.resumed
    if not done:
        click.echo(f"{summary.output}: nothing left to do")
    rows = (
        f"{_counted(summary.inputs, 'row')} in {_counted(summary.shards, 'file')}, of which {summary.failed:,} failed"
    )
    click.echo(f"{summary.output}: {rows}" + (f" ({summary.resumed:,} already present)" if summary.resumed else ""))
    if done:
        click.echo(
            f"{_counted(done, 'row')} in {duration(summary.seconds)}, {three_figures(summary.rows_per_second)}/s, "
            f"by {_counted(summary.workers, 'worker')}"
        )
    if times := ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in summary.latency_seconds.items()):
        click.echo(f"the model took {times}")
    if summary.restarts:
        click.echo(f"hosts exited early and were restarted: {_counted(summary.restarts, 'time')}")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """While it is active, SIGTERM and SIGHUP stop the map as Ctrl-C does."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
