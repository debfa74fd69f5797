"""The executor side of landing: writes the job's own Parquet files and, separately, bad records.

A task reports both to the driver. Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.engine.runtime.spill import Spill
from spark_jobs.engine.runtime.tasks import task_key
from spark_jobs.errors import CatalogError, DataError, ErrorCode, JobError, error_of
from spark_jobs.landing.blocks import RecordTooLongError
from spark_jobs.landing.files import FilePart, require_version
from spark_jobs.landing.records import BadRecord, Column, RowBlock, shown
from spark_jobs.landing.streams import UndecodableError
from spark_jobs.landing.values import TextRules, parsed

if TYPE_CHECKING:
    from spark_jobs.landing.options import Reader

REPORT_SCHEMA: Final = "report string"
_COUNT_BYTES: Final = 16 * 1024 * 1024


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


@dataclass(frozen=True, slots=True)
class LandingTask:
    """Implements ``PartReader``: stores the rows of a task's parts and yields a report on them.

    ``columns`` are the rows' columns in the order of ``schema``, which begins with a constant;
    ``partition`` are the columns whose values are in folder names. If ``keeps_bad``, bad records go
    to a file in ``folder``, else the first one is an error. Picklable.
    """

    # What errors call it, such as "source updates".
    source: str
    filesystem: pafs.FileSystem
    reader: Reader
    columns: tuple[str, ...]
    schema: pa.Schema
    partition: tuple[Column, ...]
    rules: TextRules
    storage: pafs.FileSystem
    folder: str
    operation_id: str
    keeps_bad: bool

    def read(self, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
        """Read the files of one task.

        Yields:
            ``report`` (string): a ``LandingReport`` as JSON.
        """
        report = self._landed(parts)
        yield pa.RecordBatch.from_pydict({"report": [report.to_json()]})

    def _landed(self, parts: Sequence[FilePart]) -> LandingReport:
        report = LandingReport()
        key = task_key()
        with ExitStack() as opened:
            rows = opened.enter_context(Spill(self.storage, f"{self.folder}/{key}.parquet"))
            bad = opened.enter_context(BadRecords(self.storage, f"{self.folder}/{key}.jsonl"))
            for part in parts:
                for block in self._blocks(part):
                    report.add(block)
                    complete = self._complete(block.rows, part)
                    rows.add(complete)
                    report.add_stored(complete)
                    if block.bad:
                        self._set_aside(bad, block, part)
        if rows.row_count:
            report.file, report.rows = f"{key}.parquet", rows.row_count
            report.row_bytes = rows.byte_size
        if report.bad_records:
            report.bad_file = f"{key}.jsonl"
        return report

    def _blocks(self, part: FilePart) -> Iterator[RowBlock]:
        name = part.file.name
        try:
            yield from self.reader.read(self.filesystem, part)
            require_version(self.filesystem, part.file)
        except JobError as error:
            raise error_of(error.code, f"{self.source}: {error.message}", error.remedy) from None
        except RecordTooLongError as error:
            raise self._unreadable(
                name,
                str(error),
                "Look for a quote that is never closed, or for a file of another format; a larger "
                "maxRecordBytes in the source's options allows longer ones.",
            ) from None
        except UndecodableError as error:
            raise self._unreadable(
                name, str(error), "Name the file's encoding in the source's options: encoding."
            ) from None
        except (OSError, EOFError, pa.ArrowException) as error:
            # Report a rewritten file as changed, not as the damage that it looks like.
            require_version(self.filesystem, part.file)
            raise self._unreadable(
                name, str(error).strip().splitlines()[0], "Check that the file is whole."
            ) from None

    def _complete(self, rows: pa.RecordBatch, part: FilePart) -> pa.RecordBatch:
        """Rows as they are stored: a constant, and the columns of the file and of its folders."""
        count = rows.num_rows
        columns = {name: rows.column(i) for i, name in enumerate(rows.schema.names)}
        for column in self.partition:
            text = pa.array([part.file.partition.get(column.name)], pa.string())
            values = parsed(text, column.kind, self.rules)
            if values.bad is not None:
                raise DataError(
                    ErrorCode.VALUE_NOT_STORABLE,
                    f"{self.source}: {part.file.name}: the folder's value "
                    f"{shown(text[0].as_py())} of column {column.name} is not a valid "
                    f"{column.type_name}",
                    "Correct the type in the source's schema, or the name of the folder.",
                )
            columns[column.name] = pa.repeat(values.values[0], count)
        arrays = [pa.repeat(pa.scalar(True), count)]
        arrays += [columns[name] for name in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _set_aside(self, bad: BadRecords, block: RowBlock, part: FilePart) -> None:
        before = self._lines_before(part) if part.start else 0
        if not self.keeps_bad:
            raise self._bad(block.bad[0], part, before)
        for record in block.bad:
            bad.add(record, part.file.name, before, self.operation_id)

    def _lines_before(self, part: FilePart) -> int:
        """The number of lines that end before the first line that begins in the part."""
        lines, left = 1, part.start - 1
        with self.filesystem.open_input_file(part.file.path) as stream:
            while left > 0:
                data = stream.read(min(_COUNT_BYTES, left))
                lines, left = lines + data.count(b"\n"), left - len(data)
        return lines

    def _bad(self, record: BadRecord, part: FilePart, before: int) -> JobError:
        problem = record.problem
        where = f"{self.source}: {part.file.name}"
        if record.location.line is not None:
            where += f", line {record.location.line + before}"
        if record.location.record is not None:
            where += f", record {record.location.record}"
        if problem.value is None:
            return CatalogError(
                ErrorCode.SOURCE_UNREADABLE,
                f"{where} {problem.reason}: {shown(record.text)}",
                problem.remedy,
            )
        return DataError(
            ErrorCode.VALUE_NOT_STORABLE,
            f"{where}, column {problem.column}: {shown(problem.value)} {problem.reason}; "
            f"the record is {shown(record.text)}",
            problem.remedy,
        )

    def _unreadable(self, name: str, problem: str, remedy: str) -> CatalogError:
        return CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{self.source}: {name} cannot be read: {problem}",
            remedy,
        )
