"""The checker of tables without a primary key finds what is wrong with broken ones."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.paimon.library.data_files import new_data_file
from spark_jobs.datafiles.statistics import ColumnStatistics
from tests.judge.keyed_tables import commit_files
from tests.judge.tables import Warehouse
from tests.judge.writer import JavaTable
from tests.support.append_checker import problems_of

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


@pytest.fixture
def table(tmp_path):
    warehouse = Warehouse(tmp_path)
    warehouse.create("d.t", SCHEMA, options={"bucket": "1", "bucket-key": "id"})
    return warehouse.table("d.t")


def file_of(table, *ids, first=0, content=None):
    """A file of rows whose ``v`` is NULL where the id is 0, as pypaimon describes it."""
    values = [f"v{each}" if each else None for each in ids]
    rows = pa.table({"id": ids, "v": values}, SCHEMA) if content is None else content
    folder = Path(str(table.table_path).removeprefix("file:")) / "bucket-0"
    folder.mkdir(exist_ok=True)
    path = folder / f"data-{uuid.uuid4()}-0.parquet"
    pq.write_table(rows, path)
    known = [each for each in values if each is not None]
    statistics = {
        "id": ColumnStatistics(min(ids), max(ids), 0),
        "v": ColumnStatistics(min(known), max(known), values.count(None)),
    }
    numbers = (first, first + len(ids) - 1)
    return new_data_file(table, str(path), path.stat().st_size, len(ids), statistics, numbers)


def test_sound_tables(table):
    assert problems_of(table) == []

    commit_files(table, [file_of(table, 5, 0, 7), file_of(table, 2, first=3)])

    assert problems_of(table) == []
    assert problems_of(table.table_path) == []


def test_files_of_java_and_pypaimon_are_sound(warehouse):
    schema = pa.schema([*SCHEMA, ("p", pa.int32())])
    options = {"bucket": "2", "bucket-key": "id", "deletion-vectors.enabled": "true"}
    java = JavaTable.create(warehouse.path, "d.t", schema, ["p"], options)
    rows = pa.table({"id": [1, 2, 3], "v": ["a", None, "c"], "p": [1, 1, None]}, schema)
    java.append(rows)
    java.append(rows)
    java.delete("id", [2])
    assert problems_of(warehouse.table("d.t")) == []

    java.compact()

    assert problems_of(warehouse.table("d.t")) == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"row_count": 2}, "its row count is 3, but its entry says 2"),
        ({"file_size": 7}, "its size is"),
        ({"level": 1}, "its level is 0, but its entry says 1"),
        ({"schema_id": 3}, "there is no schema 3"),
        ({"max_sequence_number": 1}, "has 3 rows, but sequence numbers 0 to 1"),
    ],
)
def test_wrong_entries(table, wrong, problem):
    commit_files(table, [replace(file_of(table, 1, 2, 3), **wrong)])

    assert any(problem in each for each in problems_of(table)), problems_of(table)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda rows: rows.drop_columns(["v"]), "its columns are ['id'] and not ['id', 'v']"),
        (lambda rows: rows.slice(1), "its row count is 2, but its entry says 3"),
        (
            lambda rows: rows.set_column(0, "id", pa.array([1, 2, 9])),
            "id has 9, which is not from 1 to 3",
        ),
        (
            lambda rows: rows.set_column(1, "v", pa.array(["v1", None, "v3"])),
            "v has 1 NULLs, but its entry says 0",
        ),
        (
            lambda rows: rows.set_column(0, "id", pa.array([1, 2, 3], pa.int32())),
            "column id is of type int32 and not int64",
        ),
    ],
)
def test_broken_files(table, change, problem):
    rows = change(pa.table({"id": [1, 2, 3], "v": ["v1", "v2", "v3"]}, SCHEMA))

    commit_files(table, [file_of(table, 1, 2, 3, content=rows)])

    assert any(problem in each for each in problems_of(table)), problems_of(table)


def test_ranges_that_overlap(table):
    commit_files(table, [file_of(table, 1, 2, 3), file_of(table, 4, 5, first=2)])

    (problem,) = problems_of(table)

    assert problem.endswith("overlap: sequence numbers 0 to 2 and sequence numbers 2 to 3")


def test_a_missing_file(table):
    file = file_of(table, 1)
    commit_files(table, [file])

    Path(file.file_path).unlink()

    assert problems_of(table) == [f"{file.file_name}: there is no such file"]


def test_rows_of_another_partition(tmp_path):
    warehouse = Warehouse(tmp_path)
    schema = pa.schema([*SCHEMA, ("p", pa.int32())])
    warehouse.create("d.t", schema, ["p"])
    warehouse.append("d.t", pa.table({"id": [1], "v": ["a"], "p": [1]}, schema))
    (path,) = tmp_path.rglob("*.parquet")
    pq.write_table(pa.table({"id": [1], "v": ["a"], "p": [2]}, schema), path)

    problems = problems_of(warehouse.table("d.t"))

    assert any("it has p = 2, but belongs to the partition 1" in each for each in problems)
