"""INT96 timestamps of any year are read, copied and assigned exactly, or refused by name."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import FileChanges
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.int96 import stored_timestamps, timestamps
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.row_groups import read_row
from spark_jobs.errors import NotSupportedError
from tests.datafiles.physical_values import physical_rows
from tests.datafiles.test_rewrite import delete, update

LOCAL = pafs.LocalFileSystem()
NOTHING = np.zeros(0, np.int64)
MICROS = pa.timestamp("us")
VALUES = [
    dt.datetime.fromisoformat(text) if text else None
    for text in (
        *("0001-01-01 00:00:00", "1582-10-10 12:00:00", "1677-09-20 01:02:03.000004", ""),
        *("1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2024-02-29 12:30:00.123456"),
        *("2262-04-12 00:00:00", "9999-12-31 23:59:59.999999"),
    )
]
NEW = dt.datetime.fromisoformat("1500-03-01 06:00:00.000001")
DAY = 86_400 * 10**9
AT = pa.field("at", MICROS)
COLUMNS = pa.schema([("id", pa.int32()), AT])
NESTED = pa.schema([("id", pa.int32()), ("s", pa.struct([AT]))])


@pytest.fixture(params=["dictionary", "plain"])
def source(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = str(tmp_path / "source.parquet")
    table = pa.table([pa.array(range(len(VALUES)), pa.int32()), pa.array(VALUES, MICROS)], COLUMNS)
    is_dictionary = request.param == "dictionary"
    int96: Any = {"use_deprecated_int96_timestamps": True, "use_dictionary": is_dictionary}
    pq.write_table(table, path, row_group_size=4, **int96)
    return path


def scanned(path: str, kind: pa.DataType = MICROS, **probes: KeyProbe) -> list[Any]:
    found = FileScan(LOCAL, [pa.field("at", kind)], probes).rows(path, NOTHING)
    return [value for _, rows in found for value in rows.column(0).cast(MICROS).to_pylist()]


def rewritten(source: str, changes: FileChanges, *more: Any) -> tuple[str, WrittenFile]:
    target = source.replace("source", "target")
    written = rewrite(LOCAL, source, target, changes, Compression(), *more)
    assert written is not None
    return target, written


@pytest.mark.parametrize("kind", [MICROS, pa.timestamp("us", "UTC")])
def test_a_scan(source: str, kind: pa.DataType) -> None:
    assert scanned(source, kind) == VALUES
    keys = [VALUES[0], VALUES[4], VALUES[8]]
    assert scanned(source, kind, at=KeyProbe(pa.array(keys, kind))) == keys
    assert read_row(LOCAL, source, 8, ["at"]) == {"at": VALUES[8]}


@pytest.mark.parametrize(
    ("nanoseconds", "day", "micros"),
    [(0, 2_440_588, 0), (999, 2_440_588, 0), (-1, 2_440_588, 0), (-1001, 2_440_588, -1)],
)
def test_fractions_of_a_microsecond_are_cut_off_as_by_spark(
    nanoseconds: int, day: int, micros: int
) -> None:
    raw = nanoseconds.to_bytes(8, "little", signed=True) + day.to_bytes(4, "little")
    stored = pa.array([bytes(12), raw, None], pa.binary(12)).slice(1)

    assert timestamps(stored).cast(pa.int64()).to_pylist() == [micros, None]


def test_microseconds_are_stored_exactly() -> None:
    stored = stored_timestamps(pa.array(VALUES, MICROS))

    assert timestamps(stored).to_pylist() == VALUES
    known = [raw.as_py() for raw in stored if raw.is_valid]
    assert all(0 <= int.from_bytes(raw[:8], "little", signed=True) < DAY for raw in known)


def test_values_that_stay_are_copied(source: str) -> None:
    target, written = rewritten(source, update("id", {1: -1}, pa.int32()))

    expected = physical_rows(Path(source))
    expected[1]["id"] = -1
    assert physical_rows(Path(target)) == expected
    require_exact(written, VALUES)


def test_rows_go(source: str) -> None:
    target, written = rewritten(source, delete(0, 5))

    left = [row for row in physical_rows(Path(source)) if row["id"] not in (0, 5)]
    assert physical_rows(Path(target)) == left
    require_exact(written, [value for i, value in enumerate(VALUES) if i not in (0, 5)])


def test_new_values_are_assigned(source: str) -> None:
    target, written = rewritten(source, update("at", {3: NEW, 8: None}, pa.timestamp("us", "UTC")))

    expected = [*VALUES[:3], NEW, *VALUES[4:8], None]
    assert scanned(target) == expected
    assert pq.ParquetFile(target).schema.column(1).physical_type == "INT96"
    require_exact(written, expected)


def test_a_column_that_is_converted(source: str) -> None:
    required = COLUMNS.field("at").with_nullable(nullable=False)
    mapping = FieldMapping(required, COLUMNS.field("at"))
    target, written = rewritten(source, delete(3), [mapping])

    expected = [value for value in VALUES if value is not None]
    assert pq.ParquetFile(target).schema.column(0).physical_type == "INT64"
    assert pq.read_table(target).column("at").to_pylist() == expected
    require_exact(written, expected)


def require_exact(written: WrittenFile, values: list[dt.datetime | None]) -> None:
    known = [value for value in values if value is not None]
    found = written.statistics["at"]
    assert (found.minimum, found.maximum) == (min(known), max(known))
    assert found.null_count == len(values) - len(known)


@pytest.fixture
def nested(tmp_path: Path) -> str:
    path = str(tmp_path / "nested.parquet")
    rows = [{"id": i, "s": {"at": value}} for i, value in enumerate(VALUES)]
    table = pa.Table.from_pylist(rows, NESTED)
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    return path


def test_nested_values_are_refused_where_they_would_be_decoded(nested: str) -> None:
    message = rf"Column s\.at of data file {re.escape(nested)} is stored as INT96"
    field = NESTED.field("s")
    mapping = FieldMapping(field.with_nullable(nullable=False), field, (FieldMapping(AT, AT),))
    few = update("s", {0: None}, field.type)

    with pytest.raises(NotSupportedError, match=message):
        list(FileScan(LOCAL, [field], {}).rows(nested, NOTHING))
    for changes, mappings in ((delete(0), None), (few, None), (delete(0), [mapping])):
        with pytest.raises(NotSupportedError, match=message):
            rewrite(LOCAL, nested, f"{nested}-new", changes, Compression(), mappings)


def test_nested_values_are_copied_and_left_unread(nested: str) -> None:
    fields = [NESTED.field("id")]
    (found,) = [rows for _, rows in FileScan(LOCAL, fields, {}).rows(nested, NOTHING)]
    assert found.num_rows == len(VALUES)

    target = f"{nested}-new"
    rewrite(LOCAL, nested, target, update("id", {1: -1}, pa.int32()), Compression())
    old, new = (physical_rows(Path(path)) for path in (nested, target))
    assert [row["s"] for row in new] == [row["s"] for row in old]
