"""The executor half of a write: sinks for change rows, and the handle with their factory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from spark_jobs.spi.writes import Fragment

if TYPE_CHECKING:
    import pyarrow as pa


class MergeSink(Protocol):
    """Stores the change rows of one sink task. Executor only: must not import a table library."""

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        """Take change rows (columns: see ``spi.rows``) in the order of the write layouts.

        UPDATE and DELETE rows come first, with each row id at most once, then INSERT rows. If one
        layout is for all rows, they come in its order.
        """
        ...

    def finish(self) -> list[Fragment]:
        """Write out what is pending and return the fragments of this task."""
        ...

    def abort(self) -> None:
        """Remove everything that this task wrote, even after ``finish``."""
        ...

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        """Values of one target row, used only in error messages."""
        ...


class MergeSinkFactory(Protocol):
    """A picklable factory of sinks: all that is sent to executors."""

    def open(self, task_key: str) -> MergeSink:
        """A sink for one task attempt; ``task_key`` is unique among tasks and their attempts."""
        ...


@dataclass(frozen=True, slots=True)
class MergeHandle:
    """A write that has begun; stays on the driver, which sends only ``sinks`` to executors."""

    sinks: MergeSinkFactory
    native: Any = field(repr=False, compare=False, default=None)
