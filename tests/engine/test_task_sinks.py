"""The sinks of a task end together, whatever becomes of one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.engine.write.change_writer import task_sinks
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi.writes import Fragment


@dataclass
class Sinks:
    """Makes sinks whose storage is away, as long as there are ``failures`` left."""

    failures: int
    aborted: list[str] = field(default_factory=list)

    def open(self, task_key: str) -> Sink:
        return Sink(self, task_key)


@dataclass
class Sink:
    sinks: Sinks
    key: str

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        raise NotImplementedError

    def finish(self) -> list[Fragment]:
        return []

    def abort(self) -> None:
        if self.sinks.failures:
            self.sinks.failures -= 1
            raise OSError("the storage is away")
        self.sinks.aborted.append(self.key)

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        raise NotImplementedError


def fail_after_opening(sinks: Sinks, *keys: str) -> None:
    with task_sinks(sinks) as opened:
        for key in keys:
            opened.open(key)
        raise DataError(ErrorCode.NOT_NULL_VIOLATION, "column a is NULL")


def test_a_sink_that_can_not_abort_neither_hides_the_error_nor_keeps_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sinks = Sinks(failures=1)

    with pytest.raises(DataError, match="NOT_NULL_VIOLATION"):
        fail_after_opening(sinks, "first", "second")

    assert sinks.aborted == ["second"]
    assert "a sink could not remove its files: the storage is away" in caplog.text


def test_sinks_of_a_task_that_ends_well_are_not_aborted() -> None:
    sinks = Sinks(failures=0)

    with task_sinks(sinks) as opened:
        opened.open("first")
        opened.finish()

    assert sinks.aborted == []
