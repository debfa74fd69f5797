"""Sorted runs: their files, what is noted about them, and rows that are refused."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter, WrittenRun
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.datafiles.statistics import ColumnStatistics
from spark_jobs.errors import DataError, ErrorCode, InternalError

INSERT, BEFORE, AFTER, DELETE = range(4)


def field(name: str, kind: pa.DataType, number: int, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable, {"PARQUET:field_id": str(number)})


SCHEMA = pa.schema(
    [
        field("note", pa.string(), 0),
        field("id", pa.int64(), 3, nullable=False),
        field("day", pa.date32(), 5, nullable=False),
    ]
)


def writer_of(
    folder: Path,
    key: tuple[str, ...] = ("id",),
    schema: pa.Schema = SCHEMA,
    size: int = 2**30,
    *,
    thin: bool = False,
) -> SortedRunWriter:
    files = NewFiles(pafs.LocalFileSystem(), schema, size, Compression("none", None))
    made: list[str] = []

    def new_path() -> str:
        made.append(f"{folder}/{len(made)}.parquet")
        return made[-1]

    return SortedRunWriter(files, key, thin, new_path)


def day(number: int) -> dt.date:
    return dt.date(2024, 1, number)


def rows(*ids: int, days: Sequence[int] = (), schema: pa.Schema = SCHEMA) -> pa.Table:
    found = [day(number) for number in days] or [day(1)] * len(ids)
    notes = [None if each % 2 else f"n{each}" for each in ids]
    return pa.table({"note": notes, "id": ids, "day": found}, schema=schema)


def write(
    writer: SortedRunWriter, table: pa.Table, first: int = 0, kinds: Sequence[int] = ()
) -> None:
    count = table.num_rows
    numbers = pa.array(range(first, first + count), pa.int64())
    writer.write(table, numbers, pa.array(kinds or [INSERT] * count, pa.int8()))


def test_a_file_has_the_key_the_record_and_the_columns(tmp_path: Path) -> None:
    writer = writer_of(tmp_path, ("day", "id"))
    write(writer, rows(1, 2), 7, [INSERT, DELETE])

    (run,) = writer.finish()

    file = pq.ParquetFile(run.path)
    ids = {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in file.schema_arrow}
    assert ids == {
        "_KEY_day": 1073741828,
        "_KEY_id": 1073741826,
        "_SEQUENCE_NUMBER": 2147483646,
        "_VALUE_KIND": 2147483645,
        "note": 0,
        "id": 3,
        "day": 5,
    }
    assert [f.name for f in file.schema_arrow if f.nullable] == ["note"]
    assert file.read().to_pydict() == {
        "_KEY_day": [day(1), day(1)],
        "_KEY_id": [1, 2],
        "_SEQUENCE_NUMBER": [7, 8],
        "_VALUE_KIND": [0, 3],
        "note": [None, "n2"],
        "id": [1, 2],
        "day": [day(1), day(1)],
    }


def test_a_thin_file_has_the_key_once(tmp_path: Path) -> None:
    writer = writer_of(tmp_path, thin=True)
    write(writer, rows(1, 2))

    (run,) = writer.finish()

    names = pq.read_schema(run.path).names
    assert names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "note", "id", "day"]
    assert (run.first_key, run.last_key) == ((1,), (2,))
    assert run.key_statistics["id"] == run.statistics["id"] == ColumnStatistics(1, 2, 0)


def test_what_is_noted_about_a_file(tmp_path: Path) -> None:
    writer = writer_of(tmp_path, ("day", "id"))
    write(writer, rows(4, 9, days=(1, 1)), 20, [INSERT, BEFORE])
    write(writer, rows(1, 2, 3, days=(2, 3, 3)), 10, [AFTER, DELETE, DELETE])

    (run,) = writer.finish()

    assert (run.rows, run.delete_count) == (5, 3)
    assert (run.first_key, run.last_key) == ((day(1), 4), (day(3), 3))
    assert (run.min_sequence_number, run.max_sequence_number) == (10, 21)
    assert run.key_statistics == {
        "day": ColumnStatistics(day(1), day(3), 0),
        "id": ColumnStatistics(1, 9, 0),
    }
    assert run.statistics == {
        **run.key_statistics,
        "note": ColumnStatistics("n2", "n4", 3),
    }
    assert run.size == Path(run.path).stat().st_size


def test_a_run_travels_as_json(tmp_path: Path) -> None:
    kinds: dict[str, tuple[pa.DataType, Any]] = {
        "decimal": (pa.decimal128(30, 4), Decimal("-12345678901234567890.1234")),
        "binary": (pa.binary(), b"\xff\x00"),
        "timestamp": (pa.timestamp("us"), dt.datetime(2024, 1, 1, 1, 2, 3, 456789)),  # noqa: DTZ001
        "instant": (
            pa.timestamp("us", "UTC"),
            dt.datetime(2024, 1, 1, 1, 2, 3, 456789, dt.UTC),
        ),
        "time": (pa.time32("ms"), dt.time(1, 2, 3, 456000)),
        "flag": (pa.bool_(), True),
        "text": (pa.string(), "x" * 3000),
    }
    schema = pa.schema([field(name, kind, i) for i, (name, (kind, _)) in enumerate(kinds.items())])
    writer = writer_of(tmp_path, tuple(kinds), schema)
    write(writer, pa.table({name: [value] for name, (_, value) in kinds.items()}, schema=schema))

    (run,) = writer.finish()

    assert WrittenRun.from_json(json.loads(json.dumps(run.to_json()))) == run
    assert run.first_key == run.last_key == tuple(value for _, value in kinds.values())


def test_files_roll_at_the_target_size_in_key_order(tmp_path: Path) -> None:
    writer = writer_of(tmp_path, size=20_000)
    for start in range(0, 4000, 500):
        kinds = [INSERT, DELETE] * 250
        write(writer, rows(*range(start, start + 500)), start, kinds)

    runs = writer.finish()

    assert len(runs) > 2
    assert sum(run.rows for run in runs) == 4000
    assert all(run.delete_count == run.rows / 2 for run in runs)
    bounds = [bound for run in runs for bound in (run.first_key[0], run.last_key[0])]
    assert bounds == sorted(set(bounds))
    for run in runs:
        keys = pq.read_table(run.path)["_KEY_id"].to_pylist()
        assert (keys[0], keys[-1]) == (run.first_key[0], run.last_key[0])


def test_a_closed_file_gets_no_more_records(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    writer.close_file()
    write(writer, rows(1, 2))
    writer.close_file()
    writer.close_file()
    write(writer, rows(3))

    assert [(run.first_key, run.rows) for run in writer.finish()] == [((1,), 2), ((3,), 1)]


def test_a_writer_without_records_writes_no_file(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    write(writer, rows())

    assert writer.finish() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("key", "batches"),
    [
        (("id",), [rows(1, 1)]),
        (("id",), [rows(1, 3, 2)]),
        (("id",), [rows(1, 2), rows(2, 3)]),
        (("id",), [rows(2), rows(1)]),
        (("day", "id"), [rows(1, 2, 2, days=(1, 1, 1))]),
        (("day", "id"), [rows(9, 1, 1, days=(1, 2, 2))]),
        (("id", "day"), [rows(1, 1, days=(2, 1))]),
        (("id", "day"), [rows(1, days=(2,)), rows(1, days=(2,))]),
    ],
)
def test_keys_out_of_order_are_a_defect(
    tmp_path: Path, key: tuple[str, ...], batches: Sequence[pa.Table]
) -> None:
    writer = writer_of(tmp_path, key)
    for batch in batches[:-1]:
        write(writer, batch)

    with pytest.raises(InternalError, match="not in strictly ascending order"):
        write(writer, batches[-1])


def test_a_closed_file_does_not_restart_the_order(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    write(writer, rows(5))
    writer.close_file()

    with pytest.raises(InternalError, match="ascending"):
        write(writer, rows(5))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["", "A", "a", "a\x00", "é", "\uffff", "\U0001f469"]),
        (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\x80\x00", b"\xff"]),
        (pa.bool_(), [False, True]),
        (pa.decimal128(30, 4), [Decimal("-10.0001"), Decimal(-2), Decimal(0), Decimal("0.0001")]),
        (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
        (pa.time32("ms"), [dt.time(0), dt.time(23, 59, 59)]),
        (pa.int8(), [-128, -1, 0, 127]),
    ],
)
def test_the_order_is_paimons(tmp_path: Path, kind: pa.DataType, values: Sequence[Any]) -> None:
    schema = pa.schema([field("k", kind, 0)])
    writer = writer_of(tmp_path, ("k",), schema)
    write(writer, pa.table({"k": values}, schema=schema))

    (run,) = writer.finish()

    assert (run.first_key, run.last_key) == ((values[0],), (values[-1],))


def test_a_null_in_the_key_names_the_column(tmp_path: Path) -> None:
    schema = pa.schema([field("id", pa.int64(), 0), field("note", pa.string(), 1)])
    writer = writer_of(tmp_path, ("id",), schema)

    with pytest.raises(DataError, match="Column id must not be NULL") as caught:
        write(writer, pa.table({"id": [1, None], "note": ["a", "b"]}, schema=schema))

    assert caught.value.code == ErrorCode.NOT_NULL_VIOLATION


def test_other_columns_are_a_defect(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="have the columns"):
        write(writer_of(tmp_path), rows(1).drop_columns(["note"]))


def test_values_become_those_of_the_table(tmp_path: Path) -> None:
    schema = pa.schema([field("at", pa.timestamp("ms"), 0), field("n", pa.int32(), 1)])
    writer = writer_of(tmp_path, ("at",), schema)
    found = pa.table(
        {"at": pa.array([-1, 1999], pa.timestamp("us")), "n": pa.array([1, 2], pa.int64())}
    )
    write(writer, found)

    (run,) = writer.finish()

    assert pq.read_table(run.path)["at"].cast(pa.int64()).to_pylist() == [-1, 1]


def test_a_key_that_no_manifest_can_name_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([field("day", pa.date32(), 0)])
    writer = writer_of(tmp_path, ("day",), schema)
    write(writer, pa.table({"day": pa.array([10**7], pa.int32()).cast(pa.date32())}))

    with pytest.raises(DataError, match="Column day") as caught:
        writer.finish()

    assert caught.value.code == ErrorCode.VALUE_NOT_STORABLE
