"""A sink that takes its time before it writes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spark_jobs.spi.sinks import MergeSink, MergeSinkFactory
from spark_jobs.spi.writes import Fragment


@dataclass(frozen=True)
class SlowSinks:
    """Makes sinks that finish ``seconds`` later than the real ones."""

    seconds: float
    real: MergeSinkFactory

    def open(self, task_key: str) -> SlowSink:
        return SlowSink(self.seconds, self.real.open(task_key))


@dataclass
class SlowSink:
    """A sink that waits, whatever happens to its task."""

    seconds: float
    real: MergeSink

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        self.real.store_merged_rows(batch)

    def finish(self) -> list[Fragment]:
        time.sleep(self.seconds)
        return self.real.finish()

    def abort(self) -> None:
        self.real.abort()

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        return self.real.read_row(row_id, columns)
