"""The executor half of a write: sinks of change rows, and the handle that takes them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from spark_jobs.spi.writes import Fragment

if TYPE_CHECKING:
    import pyarrow as pa


class MergeSink(Protocol):
    """Stores change rows of one sink task. Executor only: no table library."""

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        """Take change rows (columns: see ``spi.rows``) in the order of the layouts.

        UPDATE and DELETE rows come first, each row id at most once, then INSERT rows.
        """
        ...

    def finish(self) -> list[Fragment]:
        """Write what is open and return what was written."""
        ...

    def abort(self) -> None:
        """Remove what this task wrote, also after ``finish``."""
        ...

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        """Values of one target row, only to word an error."""
        ...


class MergeSinkFactory(Protocol):
    """Picklable maker of sinks: all that travels to executors."""

    def open(self, task_key: str) -> MergeSink:
        """A sink for one attempt of a task; ``task_key`` is unique among tasks and attempts."""
        ...


@dataclass(frozen=True, slots=True)
class MergeHandle:
    """A write that has begun; lives on the driver, only ``sinks`` travels to executors."""

    sinks: MergeSinkFactory
    native: Any = field(repr=False, compare=False, default=None)
