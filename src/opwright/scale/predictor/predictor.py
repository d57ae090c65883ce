"""A bundle as a function of batches, for the workers of Ray Data, PyTorch's DataLoader and Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from opwright.errors import MapError
from opwright.scale.facts.batch_size import check_batch
from opwright.scale.facts.bundle_facts import read_facts
from opwright.scale.predictor.asked_row import asked_row, columns_of
from opwright.scale.predictor.batches import FrameBatch, batch_of
from opwright.scale.predictor.outputs import ERROR, STATUS, Outputs, as_array, statuses
from opwright.scale.predictor.resident import HostSettings, resident_host
from opwright.scale.predictor.samples import Samples
from opwright.scale.predictor.values import content_of
from opwright.scale.results.columns import free_name
from opwright.scale.rows import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from typing_extensions import Self

    from opwright.scale.predictor.batches import Batch
    from opwright.scale.predictor.resident import ResidentHost
    from opwright.scale.rows import Answer, Row

_T = TypeVar("_T")
_MODES = ("raise", "keep")


class Predictor:
    """Runs a bundle on batches of rows, in whatever process it is called.

    The model runs in a host, a process of its own without Python, which loads the bundle once: at the first call in a
    process, for all predictors there with the same arguments; that of a bundle for a GPU on the first one.
    An operator that crashes costs the row that it computed. The host ends when the last predictor that uses it is gone,
    or with its process; where a predictor came as a pickle, with its process alone, because more will come. A forked
    process starts its own. Threads take turns.

    Inputs are the columns named as the model's inputs; a lone column of another name serves a lone input. A value is a
    path or URL, the bytes of a file, or an array of numbers, with or without the leading dimension of rows. Relative
    paths begin at the folder in which the predictor was made. Outputs are those of `opwright map`, bit for bit, for the
    same rows in the same batches.

    Args:
        bundle: a folder that `opwright ship` wrote. Where several machines use it, it has the same path on each.
        threads: how many threads one run of the model computes with.
        batch: how many rows run together, of those of one call.
        on_error: `raise` raises the error of the first row that failed. `keep` adds a column `status`, which is `ok` or
            the name of a code of the host, and a column `error`, one line or None. The outputs of a row that failed are
            NaN, or 0 where the dtype has no NaN; None in an array of objects, and null in a Table.
        memory: how many bytes of memory the host may have; None for no limit.
        timeout_s: end a host that gives no answer within this many seconds; its row fails. None for no limit.

    Raises:
        BundleError: the bundle is not valid.
        MapError: an argument is not valid.
    """

    def __init__(
        self,
        bundle: str | Path,
        *,
        threads: int = 1,
        batch: int = 1,
        on_error: str = "raise",
        memory: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        folder = Path(bundle).absolute()
        self._facts = read_facts(folder)
        if on_error not in _MODES:
            msg = f"on_error is {on_error!r}: expected {' or '.join(map(repr, _MODES))}"
            raise MapError(msg)
        if threads < 1:
            msg = f"threads is {threads}: expected at least 1"
            raise MapError(msg)
        check_batch(self._facts, batch)
        self._batch = batch
        self._keeps_errors = on_error == "keep"
        self._settings = HostSettings(str(folder), self._facts.digest, threads, memory, timeout_s, str(Path.cwd()))
        self._is_unpickled = False
        self._host: ResidentHost | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_host": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _is_unpickled=True)

    def __repr__(self) -> str:
        return f"opwright.Predictor({self._settings.bundle!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The number of the host's process; None while none runs for this process."""
        return self._host.pid if self._host is not None and self._host.is_usable else None

    def start(self) -> None:
        """Start the host of this process now, not at the first call.

        Raises:
            MapError: it does not start.
            ToolchainError: there is none, and none can be built here.
        """
        self._running().start()

    def close(self) -> None:
        """End the host of this process, for all predictors that use it; the next call starts another."""
        if self._host is not None and self._host.is_usable:
            self._host.close()
        self._host = None

    @overload
    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    def __call__(self, batch: _T) -> _T: ...
    def __call__(self, batch: Any) -> Any:
        """A batch with columns for the outputs of the model; its own columns remain as they are.

        Columns have the names that `opwright map` gives them: those of the outputs, with `_output` behind them while
        the name is taken.

        Args:
            batch: a dict of arrays (B, ...) or lists; a pandas.DataFrame; or a pyarrow.Table.

        Returns:
            The same kind. In a dict, an output is an array (B, ...), of objects if the sizes of rows differ. In a
            DataFrame, it is a column of numbers or of arrays. In a Table, it has the type of a map's table.

        Raises:
            MapError: a row failed and `on_error` is `raise`; the batch has no column for an input, or a column with the
                name of a new one; or the host does not start.
        """
        return self._extended(batch_of(batch))

    def map_pandas(self, frames: Iterable[Any]) -> Iterator[Any]:
        """Yields DataFrames with columns for the outputs, for `pyspark.sql.DataFrame.mapInPandas`.

        An output of two or more dimensions becomes lists of arrays, which Spark takes for arrays of arrays.

        Args:
            frames: pandas.DataFrames.

        Raises:
            MapError: as a call.
        """
        for frame in frames:
            yield self._extended(FrameBatch(frame, are_nested=True))

    def rows(self, rows: Iterable[Any]) -> list[dict[str, Any]]:
        """The outputs of each row.

        Args:
            rows: dicts of values by the names of the inputs, in which other names do not matter; or values for a lone
                input.

        Returns:
            For each row its outputs by their names, arrays without the dimension of rows. Where `on_error` is `keep`,
            `status` and `error` too, and None for the outputs of a row that failed.

        Raises:
            MapError: a row failed and `on_error` is `raise`, or the host does not start.
        """
        results = Outputs(self._facts.outputs)
        answers = self._answers(map(self._row, rows), results)
        states = zip(*statuses(answers), strict=True)
        return [
            {
                **(dict(zip((STATUS, ERROR), state, strict=True)) if self._keeps_errors else {}),
                **{
                    name: None if answer.failure else as_array(answer.outputs[place])
                    for place, name in enumerate(results.names)
                },
            }
            for answer, state in zip(answers, states, strict=True)
        ]

    def collate(self, samples: Sequence[Any]) -> Any:
        """The outputs for the samples of a Dataset as tensors, for the `collate_fn` of a PyTorch DataLoader.

        Args:
            samples: each a value for a lone input, or a dict with values by the names of the inputs; or a tuple of
                one of these and what belongs to it, such as a label.

        Returns:
            A dict of tensors (B, ...) by the names of the outputs, a list of tensors if the sizes of rows differ. What
            else a dict has, but for the inputs, and what else a tuple has, is collated as PyTorch does it. Where
            `on_error` is `keep`, `status` and `error` are lists.

        Raises:
            MapError: as a call.
        """
        given = Samples(samples, [one.name for one in self._facts.inputs])
        results = Outputs(self._facts.outputs)
        names = self._names_of_outputs(results, given.other_names)
        answers = self._answers(map(self._row, given.rows), results)
        states: dict[str, Any] = {}
        if self._keeps_errors:
            states = dict(zip((STATUS, ERROR), statuses(answers), strict=True))
        return given.collated(states, dict(zip(names, results.arrays(answers), strict=True)))

    def _extended(self, batch: Batch) -> Any:
        inputs, results = self._facts.inputs, Outputs(self._facts.outputs)
        columns = columns_of(inputs, batch.names)
        if missing := [one.name for one in inputs if one.name not in columns]:
            msg = (
                f"the batch has no column {missing[0]}: expected one for each input of the model. It has "
                f"{', '.join(map(str, batch.names)) or 'none'}"
            )
            raise MapError(msg)
        names = self._names_of_outputs(results, batch.names)
        rows = (asked_row(inputs, columns, partial(batch.content, row)) for row in range(batch.rows))
        return batch.extended(names, results, self._answers(rows, results), with_status=self._keeps_errors)

    def _names_of_outputs(self, results: Outputs, taken: Sequence[str]) -> list[str]:
        if self._keeps_errors and (present := [name for name in (STATUS, ERROR) if name in taken]):
            msg = f"the batch has a column {present[0]} already, which on_error='keep' adds: rename it, or leave it out"
            raise MapError(msg)
        names: list[str] = []
        for name in results.names:
            names.append(free_name(name, {*taken, *names}))
        return names

    def _row(self, given: object) -> Row | Failure:
        inputs = self._facts.inputs
        values = given if isinstance(given, Mapping) else {"": given}
        columns = columns_of(inputs, values)
        if missing := [one.name for one in inputs if one.name not in columns]:
            named = ", ".join(map(str, values)) if isinstance(given, Mapping) else "one value without a name"
            return Failure("input_unknown", f"the input {missing[0]} is missing: the row has {named or 'nothing'}")
        return asked_row(inputs, columns, lambda name, facts: content_of(values[name], facts))

    def _answers(self, rows: Iterator[Row | Failure], results: Outputs) -> list[Answer]:
        first = next(rows, None)
        if first is None:
            return []
        answers = [results.of_one_row(answer) for answer in self._running().answers(chain([first], rows), self._batch)]
        for row, answer in enumerate(answers):
            if answer.failure is not None and not self._keeps_errors:
                status, message = answer.failure
                msg = f"row {row}: {message} ({status}). With on_error='keep' it becomes a row with its error"
                raise MapError(msg)
        return answers

    def _running(self) -> ResidentHost:
        host = self._host
        if host is None or not host.is_usable:
            host = self._host = resident_host(self._settings, self._facts, keep=self._is_unpickled)
        return host
