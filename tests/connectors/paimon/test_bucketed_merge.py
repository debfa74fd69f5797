"""MERGE, UPDATE and DELETE on tables with fixed buckets: every row where readers look for it."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    DeleteSpec,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    Statement,
    UpdateAction,
    UpdateAllAction,
    UpdateSpec,
)
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, append, append_with_pypaimon, create, read

pytestmark = [pytest.mark.slow, pytest.mark.by_turns(2)]

BUCKETS = "5"
SOURCE = """
SELECT * FROM VALUES (3, 'three', 'new', 0), (4, 'four', 'new', 1), (103, 'x', 'new', 0),
  (104, 'y', 'new', 7), (105, 'a longer key', 'new', NULL) AS s(id, name, note, p)
"""
KINDS = [
    pytest.param((keys, options), id="-".join([*keys, *options]))
    for keys in ((), ("p",))
    for options in ({}, {"deletion-vectors.enabled": "true"})
]


@pytest.fixture(params=KINDS)
def table(connector: Connector, request: pytest.FixtureRequest) -> Connector:
    """Two files in each bucket of (id, name): ids 0 to 39."""
    keys, options = request.param
    columns = {"id": "int", "name": "string", "note": "string", "p": "int"}
    options = {"bucket": BUCKETS, "bucket-key": "id,name", **options}
    handle = create(connector, columns, keys, options)
    for start in (0, 20):
        ids = range(start, start + 20)
        append_with_pypaimon(
            handle, [{"id": i, "name": f"n{i}", "note": "old", "p": i % 2} for i in ids]
        )
    return connector


def run(spark: SparkSession, warehouse: Path, statement: Statement, **options: Any) -> JobResult:
    request = JobRequest(
        operation_id=str(uuid.uuid4()),
        target=NAME,
        catalog=CatalogSpec("paimon", str(warehouse)),
        statement=statement,
        sources=(SqlSource("s", SOURCE),) if isinstance(statement, MergeSpec) else (),
        options=JobOptions(**options),
    )
    result = Job(request, spark, open_again(warehouse)).run()
    assert result.error is None, result.error.message
    return result


def open_again(warehouse: Path) -> Connector:
    from spark_jobs.connectors.registry import open_connector

    return open_connector(CatalogSpec("paimon", str(warehouse)), {})


def misplaced(connector: Connector) -> list[tuple[int, int, Mapping[str, Any]]]:
    """Rows that pypaimon's own writer would put into another bucket than the one they are in."""
    from pypaimon.write.row_key_extractor import FixedBucketRowKeyExtractor

    table = connector.metadata.load_table(NAME).native.table
    extractor = FixedBucketRowKeyExtractor(table.table_schema)
    builder = table.new_read_builder()
    found = []
    for split in builder.new_scan().plan().splits():
        for batch in builder.new_read().to_arrow([split]).to_batches():
            _, buckets = extractor.extract_partition_bucket_batch(batch)
            found += [
                (split.bucket, bucket, row)
                for bucket, row in zip(buckets, batch.to_pylist(), strict=True)
                if bucket != split.bucket
            ]
    return found


def found_by_key(connector: Connector, **key: Any) -> list[dict[str, Any]]:
    """Rows that pypaimon finds with a filter on the bucket key, reading one bucket only."""
    table = connector.metadata.load_table(NAME).native.table
    builder = table.new_read_builder()
    predicates = builder.new_predicate_builder()
    equal = [predicates.equal(name, value) for name, value in key.items()]
    filtered = builder.with_filter(predicates.and_predicates(equal))
    splits = filtered.new_scan().plan().splits()
    rows: list[dict[str, Any]] = filtered.new_read().to_arrow(splits).to_pylist()
    return rows


def entries(connector: Connector) -> list[Any]:
    return [e for _, e in connector.metadata.load_table(NAME).native.files.located_entries]


def notes(connector: Connector) -> dict[int, tuple[Any, ...]]:
    return {row["id"]: (row["name"], row["note"], row["p"]) for row in read(connector)}


OLD = {i: (f"n{i}", "old", i % 2) for i in range(40)}


def merge(*cases: MergeCase, on: str = "t.id = s.id") -> MergeSpec:
    return MergeSpec("s", on, cases, "t", "s")


def test_new_rows_go_to_their_buckets(
    spark: SparkSession, warehouse: Path, table: Connector
) -> None:
    run(spark, warehouse, merge(MergeCase("not_matched", InsertAllAction())))

    new = {103: ("x", "new", 0), 104: ("y", "new", 7), 105: ("a longer key", "new", None)}
    assert notes(table) == OLD | new
    assert misplaced(table) == []
    assert [row["p"] for row in found_by_key(table, id=105, name="a longer key")] == [None]
    assert {entry.total_buckets for entry in entries(table)} == {int(BUCKETS)}


def test_rows_whose_key_changes_move(
    spark: SparkSession, warehouse: Path, table: Connector
) -> None:
    result = run(
        spark,
        warehouse,
        merge(MergeCase("matched", UpdateAllAction()), MergeCase("not_matched", InsertAllAction())),
    )

    assert (result.metrics.updated, result.metrics.inserted) == (2, 3)
    found = notes(table)
    assert (found[3], found[4]) == (("three", "new", 0), ("four", "new", 1))
    assert len(found) == 43
    assert misplaced(table) == []
    assert len(found_by_key(table, id=3, name="three")) == 1
    assert found_by_key(table, id=3, name="n3") == []


def test_a_key_may_get_the_value_that_it_has(
    spark: SparkSession, warehouse: Path, table: Connector
) -> None:
    same = (Assignment("name", "t.name"), Assignment("note", "'same'"))
    result = run(spark, warehouse, merge(MergeCase("matched", UpdateAction(same))))

    assert result.metrics.updated == 2
    assert notes(table) == OLD | {3: ("n3", "same", 1), 4: ("n4", "same", 0)}
    assert misplaced(table) == []


def test_update_without_the_key_rewrites_files_in_their_bucket(
    spark: SparkSession, warehouse: Path, table: Connector
) -> None:
    run(spark, warehouse, UpdateSpec("t", (Assignment("note", "'u'"),), "id % 10 = 0"))

    assert notes(table) == {i: (n, "u" if i % 10 == 0 else o, p) for i, (n, o, p) in OLD.items()}
    assert misplaced(table) == []
    assert all(f"/bucket-{e.bucket}/" in p for p, e in located(table))


def located(connector: Connector) -> Sequence[tuple[str, Any]]:
    found: Sequence[tuple[str, Any]] = connector.metadata.load_table(
        NAME
    ).native.files.located_entries
    return found


def test_update_of_the_key_moves_rows(
    spark: SparkSession, warehouse: Path, table: Connector
) -> None:
    move = UpdateSpec("t", (Assignment("id", "id + 1000"),), "id >= 10")
    result = run(spark, warehouse, move, target_file_size=1_000)

    assert result.metrics.updated == 30
    assert notes(table) == {(i if i < 10 else i + 1000): row for i, row in OLD.items()}
    assert misplaced(table) == []
    assert len(found_by_key(table, id=1039, name="n39")) == 1


def test_delete_leaves_the_others_in_their_buckets(
    spark: SparkSession, warehouse: Path, table: Connector
) -> None:
    run(spark, warehouse, DeleteSpec("t", "id % 3 = 0"))

    assert notes(table) == {i: row for i, row in OLD.items() if i % 3}
    assert misplaced(table) == []


def test_files_of_a_bucket_keep_an_order_of_their_own(
    spark: SparkSession, warehouse: Path, connector: Connector
) -> None:
    create(connector, {"id": "int", "p": "date"}, ["p"], {"bucket": "2", "bucket-key": "id"})
    days = [dt.date(2024, 1, 1), dt.date(1960, 1, 1), None]
    for start in (0, 30):
        ids = range(start, start + 30)
        append(connector, [{"id": i, "p": days[i % 3]} for i in ids], f"append {start}")

    run(spark, warehouse, DeleteSpec("t", "id % 5 = 0"))
    run(spark, warehouse, UpdateSpec("t", (Assignment("id", "id + 1000"),), "id % 2 = 0"))

    ranges: dict[Any, list[tuple[int, int]]] = {}
    for entry in entries(connector):
        place = (tuple(entry.partition.values), entry.bucket)
        file = entry.file
        ranges.setdefault(place, []).append((file.min_sequence_number, file.max_sequence_number))
        assert file.max_sequence_number - file.min_sequence_number >= file.row_count - 1
    assert len(ranges) == 6
    assert {len(each) for each in ranges.values()} == {3}
    for each in ranges.values():
        assert all(before[1] < after[0] for before, after in pairwise(sorted(each)))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("timestamp", dt.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=dt.UTC)),
        ("timestamp_ntz", dt.datetime(1924, 5, 6, 7, 8, 9, 123456)),  # noqa: DTZ001
        ("decimal(30,4)", Decimal("-123.4567")),
        ("binary", b"\x00\x01"),
        ("double", -1.5),
        ("date", dt.date(1960, 1, 1)),
    ],
)
def test_values_that_came_through_spark_are_hashed_as_stored(
    spark: SparkSession, warehouse: Path, connector: Connector, kind: str, value: Any
) -> None:
    options = {"bucket": "97", "bucket-key": "k.1"}
    columns = {"id": "int", "k.1": kind, "deep": "array<struct<a:map<string,timestamp>>>"}
    handle = create(connector, columns, options=options)
    deep = [{"a": [("x", dt.datetime(2020, 1, 1, tzinfo=dt.UTC))]}]
    append_with_pypaimon(handle, [{"id": 1, "k.1": value, "deep": deep}])
    assignments = (Assignment("`k.1`", "`k.1`"), Assignment("id", "2"))
    run(
        spark,
        warehouse,
        UpdateSpec("t", assignments, "id = 1"),
        session_time_zone="America/New_York",
    )

    assert read(connector) == [{"id": 2, "k.1": value, "deep": deep}]
    assert misplaced(connector) == []
