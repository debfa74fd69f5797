"""A parquet or ORC file that lacks a column is an error, unless the options ask for NULLs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from tests.conformance.harness import Harness
from tests.engine.landed import Landing, new_landing


@pytest.fixture
def landing(make_table: Callable[..., Harness], tmp_path: Path) -> Landing:
    landing = new_landing(make_table, tmp_path)
    landing.folder.mkdir()
    return landing


def write(landing: Landing, name: str, table: pa.Table) -> None:
    path = landing.folder / name
    if path.suffix == ".orc":
        orc.write_table(table, path)
    else:
        pq.write_table(table, path)


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_a_file_that_lacks_a_column_is_named(landing: Landing, format_: str) -> None:
    write(landing, f"a.{format_}", pa.table({"id": [1], "v": ["x"]}))
    write(landing, f"b.{format_}", pa.table({"id": [2], "w": ["y"]}))

    result = landing.insert(str(landing.folder), format_, schema="id BIGINT, v STRING")

    assert result.error is not None
    assert result.error.code == "SOURCE_UNREADABLE"
    assert f"b.{format_} has no column v; it has id, w" in result.error.message
    assert "mergeSchema" in result.error.remedy
    assert landing.rows("id") == []


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_files_with_other_columns_where_no_schema_decides(landing: Landing, format_: str) -> None:
    """Spark takes the columns of one of the files, whichever."""
    write(landing, f"a.{format_}", pa.table({"id": [1], "v": ["x"]}))
    write(landing, f"b.{format_}", pa.table({"id": [2]}))

    result = landing.insert(str(landing.folder), format_)

    assert result.error is not None
    assert result.error.code == "SOURCE_UNREADABLE"
    assert "column v" in result.error.message
    assert landing.rows("id") == []


def test_nulls_where_merge_schema_asks_for_them(landing: Landing) -> None:
    write(landing, "a.parquet", pa.table({"id": [1], "v": ["x"]}))
    write(landing, "b.parquet", pa.table({"id": [2]}))

    result = landing.insert(str(landing.folder), "parquet", {"mergeSchema": "true"})

    assert result.error is None, result.error
    assert landing.rows("id", "v") == [(1, "x"), (2, None)]
    found = result.metrics.sources["s"]
    assert (found.files, found.records) == (2, 2)
    assert found.bytes == sum(each.stat().st_size for each in landing.folder.iterdir())


def test_a_column_that_no_file_has(landing: Landing) -> None:
    write(landing, "a.parquet", pa.table({"id": [1]}))

    options = {"mergeSchema": "true"}
    result = landing.insert(str(landing.folder), "parquet", options, "id BIGINT, v STRING")

    assert result.error is not None
    assert "has no column v" in result.error.message


def test_a_field_that_a_file_lacks(landing: Landing) -> None:
    write(landing, "a.parquet", pa.table({"id": [1], "s": [[{"v": "x"}]]}))
    write(landing, "b.parquet", pa.table({"id": [2], "s": [[{"w": "y"}]]}))

    query = "SELECT id, s[0].v FROM files"
    result = landing.insert(str(landing.folder), "parquet", query=query)

    assert result.error is not None
    assert "b.parquet has no column s.element.v" in result.error.message


def test_names_in_another_case(landing: Landing) -> None:
    write(landing, "a.parquet", pa.table({"id": [1], "v": ["x"]}))
    write(landing, "b.parquet", pa.table({"ID": [2], "V": ["y"]}))

    result = landing.insert(str(landing.folder), "parquet")

    assert result.error is None, result.error
    assert landing.rows("id", "v") == [(1, "x"), (2, "y")]


def test_many_files_are_looked_at_by_tasks(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.engine.source.file_columns._BY_DRIVER", 2)
    for i in range(5):
        write(landing, f"{i}.parquet", pa.table({"id": [i], "v": ["x"]}))
    assert landing.insert(str(landing.folder), "parquet").error is None
    write(landing, "5.parquet", pa.table({"id": [5]}))

    result = landing.insert(str(landing.folder), "parquet", operation_id="operation-2")

    assert result.error is not None
    assert "5.parquet has no column v" in result.error.message


def test_a_damaged_file_is_named(landing: Landing) -> None:
    write(landing, "a.parquet", pa.table({"id": [1]}))
    (landing.folder / "b.parquet").write_bytes(b"PAR1 and nothing else")

    result = landing.insert(str(landing.folder), "parquet")

    assert result.error is not None
    assert result.error.code == "SOURCE_UNREADABLE"
    assert "b.parquet cannot be read" in result.error.message


def test_old_days_of_a_writer_that_is_not_known_are_an_error(landing: Landing) -> None:
    """Hive counted days before 1582 in another calendar, and its files do not say so."""
    write(landing, "a.parquet", pa.table({"id": [1], "d": [dt.date(1500, 1, 1)]}))
    path = landing.folder / "a.parquet"
    # What Hive says of itself, at the same length.
    data = path.read_bytes()
    start = data.index(b"parquet-cpp-arrow version")
    end = data.index(b"\x19", start)
    named = b"parquet-mr version 1.10".ljust(end - start)
    path.write_bytes(data[:start] + named + data[end:])

    result = landing.insert(str(landing.folder), "parquet")

    assert result.error is not None
    assert landing.rows("id") == []
    options = {"datetimeRebaseMode": "CORRECTED"}
    again = landing.insert(str(landing.folder), "parquet", options, operation_id="operation-2")
    assert again.error is None, again.error
    assert landing.rows("d") == [(dt.date(1500, 1, 1),)]
