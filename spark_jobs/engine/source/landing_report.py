"""What a landing task reports to the driver, and the bad records that it sets aside.

Imported by executors.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.fs as pafs

if TYPE_CHECKING:
    from spark_jobs.landing.records import BadRecord, RowBlock


@dataclass(slots=True)
class LandingReport:
    """Counts of one scan task; ``file`` and ``bad_file`` are names below the task's folder.

    ``row_bytes`` is the size of the rows as Arrow, ``column_bytes`` that of each column. ``seen``
    are the names of columns that occur in the files.
    """

    file: str | None = None
    rows: int = 0
    row_bytes: int = 0
    column_bytes: list[int] = field(default_factory=list)
    records: int = 0
    lost_values: int = 0
    lost_records: int = 0
    bad_records: int = 0
    bad_file: str | None = None
    seen: list[str] = field(default_factory=list)

    def add(self, block: RowBlock) -> None:
        """Count what was read."""
        self.records += block.records
        self.lost_values += block.lost_values
        self.lost_records += block.lost_records
        self.bad_records += len(block.bad)
        self.seen = sorted(block.seen.union(self.seen))

    def add_stored(self, rows: pa.RecordBatch) -> None:
        """Count the bytes of rows that were stored."""
        sizes = [column.get_total_buffer_size() for column in rows.columns]
        known = self.column_bytes or [0] * len(sizes)
        self.column_bytes = [a + b for a, b in zip(known, sizes, strict=True)]

    def to_json(self) -> str:
        """The report as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> LandingReport:
        """The report from the text that ``to_json`` returned."""
        return cls(**json.loads(text))


class BadRecords:
    """A JSON Lines file with one line per bad record, created with the first of them."""

    def __init__(self, filesystem: pafs.FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self._opened = ExitStack()
        self._stream: pa.NativeFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def add(self, record: BadRecord, file: str, lines_before: int, operation_id: str) -> None:
        """Store a record of ``file``; ``lines_before`` counts the lines before its part."""
        if self._stream is None:
            stream = self._filesystem.open_output_stream(self._path)
            self._stream = self._opened.enter_context(stream)
        problem = record.problem
        line = {
            "file": file,
            "line": None if record.location.line is None else record.location.line + lines_before,
            "record": record.location.record,
            "column": problem.column,
            "value": problem.value,
            "expected": problem.expected,
            "reason": problem.reason,
            "raw": record.text,
            "operation_id": operation_id,
        }
        self._stream.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
