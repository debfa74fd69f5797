"""Two sinks of a failing statement: one fails, the other writes after the driver has cleaned up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi.sinks import MergeSink, MergeSinkFactory
from spark_jobs.spi.writes import Fragment


@dataclass(frozen=True)
class LateSinks:
    """Makes sinks that wait for each other through files in ``signals``."""

    signals: Path
    real: MergeSinkFactory

    def open(self, task_key: str) -> LateSink:
        return LateSink(self.signals, self.real.open(task_key))


@dataclass
class LateSink:
    """The second one to finish writes when ``go`` is there, and says ``written``."""

    signals: Path
    real: MergeSink

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        self.real.store_merged_rows(batch)

    def finish(self) -> list[Fragment]:
        try:
            (self.signals / "first").touch(exist_ok=False)
        except FileExistsError:
            (self.signals / "second").touch()
            wait_for((self.signals / "go").exists)
            fragments = self.real.finish()
            self._say_written(sum(each.bytes_added for each in fragments))
            return fragments
        wait_for((self.signals / "second").exists)
        raise DataError(ErrorCode.NOT_NULL_VIOLATION, "column a is NULL")

    def _say_written(self, size: int) -> None:
        """The file is complete as soon as it is there."""
        unfinished = self.signals / "unfinished"
        unfinished.write_text(str(size))
        unfinished.rename(self.signals / "written")

    def abort(self) -> None:
        self.real.abort()

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        return self.real.read_row(row_id, columns)


def wait_for(look: Callable[[], object], seconds: float = 300) -> None:
    """Until ``look`` returns something true."""
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.02)
