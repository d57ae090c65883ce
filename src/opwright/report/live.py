"""A progress bar, shown only on a terminal."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.errors import LiveError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console
    from typing_extensions import Self


class LiveBar:
    """A progress bar on a terminal, removed at the end; hidden without a terminal, and if steps are printed as lines.

    Args:
        namespace: the namespace of the library; the bar's label.
        console: where to draw.
        verbose: print lines instead of a bar.
        draws_itself: whether a thread redraws the bar; otherwise it is redrawn on request.
    """

    def __init__(self, namespace: str, console: Console, *, verbose: bool = False, draws_itself: bool = True) -> None:
        self._namespace = namespace
        self._console = console
        self._verbose = verbose
        self._live = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            expand=True,
            auto_refresh=draws_itself,
            disable=verbose or not console.is_interactive,
        )
        self._bar = self._live.add_task(namespace, total=None)

    def __enter__(self) -> Self:
        # A console can have only one live display; the caller's has precedence.
        with contextlib.suppress(LiveError):
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
