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
    """Runs a bundle on batches of rows, in any process that calls it.

    The model runs in a host, a separate process without Python, which loads the bundle once: at the first call in a
    process, for all predictors there with the same arguments. The host of a bundle for a GPU uses the first GPU. If an
    operator crashes, only the row that it computed fails. The host exits when the last predictor that uses it is
    deleted, or with its process. The host of an unpickled predictor exits only with its process, because more
    predictors will follow. A forked process starts its own host. Threads take turns.

    Inputs are the columns with the names of the model's inputs; a single column may have any name if the model has a
    single input. A value is a path or URL, the bytes of a file, or an array of numbers, with or without the leading row
    dimension. Relative paths start from the folder in which the predictor was created. Outputs are bitwise identical to
    those of `opwright map` for the same rows in the same batches.

    Args:
        bundle: a folder that `opwright ship` wrote. If several machines use it, it must have the same path on each.
        threads: the number of threads that one run of the model uses.
        batch: the number of rows of one call that run together.
        on_error: `raise` raises the error of the first row that failed. `keep` adds a column `status`, which is `ok` or
            the name of a host exit code, and a column `error`, one line or None. The outputs of a row that failed are
            NaN, or 0 if the dtype has no NaN; None in an object array, and null in a Table.
        memory: the memory limit of the host in bytes; None for no limit.
        timeout_s: stop a host that does not answer within this time, in seconds; its row fails. None for no limit.

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
        """The process ID of the host; None if none runs for this process."""
        return self._host.pid if self._host is not None and self._host.is_usable else None

    def start(self) -> None:
        """Start the host of this process now instead of at the first call.

        Raises:
            MapError: the host does not start.
            ToolchainError: there is no host, and it cannot be built here.
        """
        self._running().start()

    def close(self) -> None:
        """Stop the host of this process, for all predictors that use it; the next call starts another one."""
        if self._host is not None and self._host.is_usable:
            self._host.close()
        self._host = None

    @overload
    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]: ...
    @overload
    def __call__(self, batch: _T) -> _T: ...
    def __call__(self, batch: Any) -> Any:
        """Add columns for the outputs of the model to a batch, whose own columns stay unchanged.

        Columns have the same names as in `opwright map`: those of the outputs, with `_output` appended as long as the
        name is taken.

        Args:
            batch: a dict of arrays (B, ...) or lists; a pandas.DataFrame; or a pyarrow.Table.

        Returns:
            A batch of the same type. In a dict, an output is an array (B, ...), or an object array if the sizes of rows
            differ. In a DataFrame, it is a column of numbers or arrays. In a Table, it has the type of a map's table.

        Raises:
            MapError: a row failed and `on_error` is `raise`; the batch lacks a column for an input, or has a column
                with the name of a new one; or the host does not start.
        """
        return self._extended(batch_of(batch))

    def map_pandas(self, frames: Iterable[Any]) -> Iterator[Any]:
        """Yield DataFrames with columns for the outputs, for `pyspark.sql.DataFrame.mapInPandas`.

        An output of two or more dimensions becomes lists of arrays, which Spark converts to arrays of arrays.

        Args:
            frames: pandas.DataFrames.

        Raises:
            MapError: as in a call.
        """
        for frame in frames:
            yield self._extended(FrameBatch(frame, are_nested=True))

    def rows(self, rows: Iterable[Any]) -> list[dict[str, Any]]:
        """Compute the outputs of each row.

        Args:
            rows: dicts of values by the names of the inputs, in which other names are ignored; or values for a single
                input.

        Returns:
            For each row its outputs by name, arrays without the row dimension. If `on_error` is `keep`, also `status`
            and `error`, and None for the outputs of a row that failed.

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
        """Compute the outputs of a Dataset's samples as tensors, for the `collate_fn` of a PyTorch DataLoader.

        Args:
            samples: each a value for a single input, or a dict with values by the names of the inputs; or a tuple of
                one of these and further values, such as a label.

        Returns:
            A dict of tensors (B, ...) by the names of the outputs, or lists of tensors if the sizes of rows differ.
            Other entries of a dict, except the inputs, and other elements of a tuple are collated as PyTorch does. If
            `on_error` is `keep`, `status` and `error` are lists.

        Raises:
            MapError: as in a call.
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
            msg = f"the batch already has a column {present[0]}, which on_error='keep' adds: rename it, or remove it"
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
                msg = f"row {row}: {message} ({status}). Pass on_error='keep' to write a row with its error instead"
                raise MapError(msg)
        return answers

    def _running(self) -> ResidentHost:
        host = self._host
        if host is None or not host.is_usable:
            host = self._host = resident_host(self._settings, self._facts, keep=self._is_unpickled)
        return host
