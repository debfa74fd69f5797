"""Writes sorted runs: files of records in key order, one record per key. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.connectors.paimon.keyed.file_columns import (
    DELETE_KIND,
    KEY_PREFIX,
    SEQUENCE_NUMBER,
    UPDATE_BEFORE_KIND,
    VALUE_KIND,
    file_schema,
)
from spark_jobs.datafiles.conform import conform
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter
from spark_jobs.datafiles.rolling_writer import NewFiles, RollingWriter
from spark_jobs.datafiles.statistics import ColumnStatistics
from spark_jobs.datafiles.values import decode_value, encode_value
from spark_jobs.errors import DataError, ErrorCode, InternalError

_RETRACTING_KINDS = pa.array([UPDATE_BEFORE_KIND, DELETE_KIND], pa.int8())


@dataclass(frozen=True, slots=True)
class WrittenRun:
    """A finished file of a sorted run; ``size`` is in bytes.

    ``statistics`` has every column of the table, ``key_statistics`` every column of the key.
    ``first_key`` and ``last_key`` are values in the key's order. ``delete_count`` counts the
    records of kind -U and -D among ``rows``.
    """

    path: str
    size: int
    rows: int
    delete_count: int
    first_key: tuple[Any, ...]
    last_key: tuple[Any, ...]
    min_sequence_number: int
    max_sequence_number: int
    key_statistics: Mapping[str, ColumnStatistics]
    statistics: Mapping[str, ColumnStatistics]

    def to_json(self) -> dict[str, Any]:
        """The run as JSON data."""
        return {
            "path": self.path,
            "size": self.size,
            "rows": self.rows,
            "delete_count": self.delete_count,
            "first_key": [encode_value(value) for value in self.first_key],
            "last_key": [encode_value(value) for value in self.last_key],
            "sequence_numbers": [self.min_sequence_number, self.max_sequence_number],
            "key_statistics": {n: each.to_json() for n, each in self.key_statistics.items()},
            "statistics": {n: each.to_json() for n, each in self.statistics.items()},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> WrittenRun:
        """The run from the output of ``to_json``."""
        low, high = document["sequence_numbers"]
        return cls(
            path=document["path"],
            size=document["size"],
            rows=document["rows"],
            delete_count=document["delete_count"],
            first_key=tuple(map(decode_value, document["first_key"])),
            last_key=tuple(map(decode_value, document["last_key"])),
            min_sequence_number=low,
            max_sequence_number=high,
            key_statistics=_statistics_from_json(document["key_statistics"]),
            statistics=_statistics_from_json(document["statistics"]),
        )


class SortedRunWriter:
    """Writes the records of one bucket in key order; a file is rolled at the target size.

    The schema of ``files`` has all columns of the table, in its order and with Paimon's field ids.
    ``key`` is the primary key without the partition keys. ``thin``: the table has
    ``data-file.thin-mode``. ``new_path`` returns the path of a new file. ``is_changelog``: a key
    may have two records, which have to come in one call of ``write``.
    """

    def __init__(
        self,
        files: NewFiles,
        key: tuple[str, ...],
        thin: bool,
        new_path: Callable[[], str],
        *,
        is_changelog: bool = False,
    ) -> None:
        self._columns = files.schema
        self._key = key
        self._is_changelog = is_changelog
        self._schema = file_schema(files.schema, key, thin=thin)
        self._last: pa.Table | None = None
        self._number = 0
        stored = NewFiles(files.filesystem, self._schema, files.target_file_size, files.compression)
        self._writer: RollingWriter[int, WrittenRun] = RollingWriter(
            stored, lambda number: _RunFile(stored.open(new_path()), files.schema.names, key)
        )

    def write(
        self, rows: pa.Table, sequence_numbers: pa.Array | pa.ChunkedArray, kinds: pa.Array
    ) -> None:
        """Add records: the table's columns, and each record's sequence number and kind (int8).

        Raises:
            DataError: NOT_NULL_VIOLATION or VALUE_NOT_STORABLE; names the column.
            InternalError: the columns are not the table's, or the keys are not ascending.
        """
        if rows.column_names != self._columns.names:
            raise _defect(f"Rows for sorted files have the columns {rows.column_names}.")
        if rows.num_rows == 0:
            return
        stored = self._conformed(rows)
        keys = stored.select(self._key)
        self._require_ascending(keys)
        numbers = sequence_numbers
        if isinstance(numbers, pa.Array):
            numbers = pa.chunked_array([numbers], pa.int64())
        columns = {f"{KEY_PREFIX}{name}": stored.column(name) for name in self._key}
        columns |= {SEQUENCE_NUMBER: numbers, VALUE_KIND: pa.chunked_array([kinds], pa.int8())}
        columns |= {name: stored.column(name) for name in self._columns.names}
        arrays = [columns[name] for name in self._schema.names]
        self._writer.write(self._number, pa.Table.from_arrays(arrays, schema=self._schema))
        self._last = keys.slice(rows.num_rows - 1)

    def close_file(self) -> None:
        """Let the next records begin a new file."""
        self._number += 1

    def finish(self) -> list[WrittenRun]:
        """Close the open file; returns all written files in key order.

        Raises:
            DataError: VALUE_NOT_STORABLE; names the column.
        """
        return [run for _, run in self._writer.finish()]

    def close_quietly(self) -> None:
        """Abandon the open file."""
        self._writer.close_quietly()

    def _conformed(self, rows: pa.Table) -> pa.Table:
        arrays = []
        for field in self._columns:
            target = field.with_nullable(field.nullable and field.name not in self._key)
            chunks = [conform(chunk, target) for chunk in rows.column(field.name).chunks]
            arrays.append(pa.chunked_array(chunks, field.type))
        return pa.Table.from_arrays(arrays, schema=self._columns)

    def _require_ascending(self, keys: pa.Table) -> None:
        before = keys.slice(0, keys.num_rows - 1)
        if self._last is None:
            following = keys.slice(1)
        else:
            before, following = pa.concat_tables([self._last, before]), keys
        if self._is_changelog:
            is_wrong, order = pc.any(_is_less(following, before)).as_py(), "ascending"
        else:
            is_wrong, order = not pc.all(_is_less(before, following)).as_py(), "strictly ascending"
        if following.num_rows and is_wrong:
            raise _defect(f"Rows for sorted files are not in {order} order of their key.")


class _RunFile:
    """One file; notes what its manifest entry needs besides column statistics."""

    def __init__(
        self, writer: ParquetFileWriter, columns: Sequence[str], key: tuple[str, ...]
    ) -> None:
        self._writer = writer
        self._columns = columns
        self._key = key
        self._delete_count = 0
        self._first: tuple[Any, ...] | None = None
        self._last: tuple[Any, ...] = ()

    @property
    def bytes_written(self) -> int:
        return self._writer.bytes_written

    def write_row_group(self, table: pa.Table) -> None:
        self._writer.write_row_group(table)
        retracting = pc.is_in(table.column(VALUE_KIND), value_set=_RETRACTING_KINDS)
        self._delete_count += pc.sum(retracting).as_py() or 0
        if self._first is None:
            self._first = self._key_at(table, 0)
        self._last = self._key_at(table, table.num_rows - 1)

    def finish(self) -> WrittenRun:
        written = self._writer.finish()
        statistics = written.statistics
        numbers = statistics[SEQUENCE_NUMBER]
        return WrittenRun(
            path=written.path,
            size=written.size,
            rows=written.rows,
            delete_count=self._delete_count,
            first_key=self._first or (),
            last_key=self._last,
            min_sequence_number=numbers.minimum,
            max_sequence_number=numbers.maximum,
            key_statistics={name: statistics[name] for name in self._key},
            statistics={name: statistics[name] for name in self._columns},
        )

    def close_quietly(self) -> None:
        self._writer.close_quietly()

    def _key_at(self, table: pa.Table, row: int) -> tuple[Any, ...]:
        return tuple(_key_value(table.column(name)[row], name) for name in self._key)


def _key_value(scalar: pa.Scalar, column: str) -> Any:
    """The value of a key column for the manifest, which readers in Python must be able to hold."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError) as error:
        raise DataError(
            ErrorCode.VALUE_NOT_STORABLE,
            f"Column {column} of the primary key cannot have a new value: {error}",
            "Use dates of the years 1 to 9999 and times of whole microseconds in the key.",
        ) from None


def _is_less(left: pa.Table, right: pa.Table) -> pa.ChunkedArray:
    """Whether each row of ``left`` comes before the same row of ``right``: column by column."""
    (*others, last) = left.column_names
    is_less = pc.less(left.column(last), right.column(last))
    for name in reversed(others):
        ahead, behind = left.column(name), right.column(name)
        is_less = pc.or_(pc.less(ahead, behind), pc.and_(pc.equal(ahead, behind), is_less))
    return is_less


def _statistics_from_json(document: Mapping[str, Any]) -> dict[str, ColumnStatistics]:
    return {name: ColumnStatistics.from_json(each) for name, each in document.items()}


def _defect(text: str) -> InternalError:
    return InternalError(
        ErrorCode.INTERNAL_ERROR, text, "This is a defect: report it with the statement."
    )
