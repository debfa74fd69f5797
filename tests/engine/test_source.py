"""The source is evaluated once, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from pyspark.sql import DataFrame, SparkSession, types
from pyspark.sql import functions as F

from spark_jobs.contract.request import FileSource, TableName, TableSource
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.runtime.back_off import ATTEMPTS
from spark_jobs.engine.runtime.lease import Lease
from spark_jobs.engine.source.materialized import MaterializedSource, materialize
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.storage import WarehouseStorage
from spark_jobs.spi.tables import TableHandle
from tests.conformance.behaviour import (
    Behaviour,
    delete,
    delete_from,
    insert,
    matched,
    not_matched,
    update,
)
from tests.conformance.check import request_of
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS, order


@pytest.fixture(params=["read by Spark", "read by pyarrow"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> WarehouseStorage:
    root = tmp_path / "a warehouse [1]"
    root.mkdir()
    uri = f"file://{root}" if request.param == "read by Spark" else None
    return WarehouseStorage(pafs.LocalFileSystem(), str(root), uri)


def materialized(
    spark: SparkSession, frame: DataFrame, columns: list[str], storage: WarehouseStorage
) -> MaterializedSource:
    Lease(storage.filesystem, f"{storage.root}/_operations/scratch").take()
    return materialize(spark, frame, columns, storage, "_operations/scratch")


def test_a_random_source_has_the_same_rows_each_time(
    spark: SparkSession, storage: WarehouseStorage
) -> None:
    random = spark.range(50).select("id", F.rand().alias("r"), F.expr("uuid()").alias("u"))

    source = materialized(spark, random, ["id", "r", "u"], storage)

    first = sorted(map(tuple, source.frame.collect()))
    assert sorted(map(tuple, source.frame.repartition(7, "r").collect())) == first
    assert len({row[2] for row in first}) == 50
    assert source.row_count == 50
    assert source.byte_size >= 50 * (8 + 8 + 36)


def test_names_types_and_values_are_kept(spark: SparkSession, storage: WarehouseStorage) -> None:
    frame = spark.sql(
        "SELECT 1 AS `a b`, '' AS `c.d`, DATE'0001-01-01' AS `day`, NULL AS void,"
        " named_struct('x', array(map('k', CAST(NULL AS DECIMAL(38, 3))))) AS nested,"
        " TIMESTAMP_NTZ'1500-01-01 00:00:00.000001' AS ntz, TIMESTAMP'1500-01-01 00:00:00' AS ltz"
    )
    names = frame.columns

    source = materialized(spark, frame, names, storage)

    assert source.frame.select([f"`{name}`" for name in names]).collect() == frame.collect()
    assert source.frame.columns == sorted(names)
    assert dict(source.frame.dtypes) == dict(frame.dtypes)


def test_only_the_asked_columns_are_evaluated(
    spark: SparkSession, storage: WarehouseStorage
) -> None:
    frame = spark.sql("SELECT 1 AS a, raise_error('read') AS b, 2 AS twice, 3 AS TWICE")

    source = materialized(spark, frame, ["a"], storage)

    assert source.frame.collect() == [(1,)]


def test_rows_are_counted_where_no_column_is_asked_for(
    spark: SparkSession, storage: WarehouseStorage
) -> None:
    source = materialized(spark, spark.range(7), [], storage)

    assert (source.row_count, source.frame.count(), source.frame.columns) == (7, 7, [])


def test_an_empty_source(spark: SparkSession, storage: WarehouseStorage) -> None:
    source = materialized(spark, spark.range(0), ["id"], storage)

    assert (source.row_count, source.frame.collect(), source.frame.columns) == (0, [], ["id"])


def test_nested_values_that_are_all_empty(spark: SparkSession, storage: WarehouseStorage) -> None:
    """Spark gives such arrays without offsets, over which pyarrow's nbytes crashes."""
    kind = "array<struct<m: map<string, array<int>>, d: date>>"
    frame = spark.range(3).select("id", F.expr(f"cast(array() AS {kind})").alias("nested"))

    source = materialized(spark, frame, ["id", "nested"], storage)

    assert sorted((row.id, row.nested) for row in source.frame.collect()) == [
        (0, []),
        (1, []),
        (2, []),
    ]


CALENDAR_INTERVAL = pytest.param(
    "make_interval(1)",
    marks=pytest.mark.skipif(
        not hasattr(types, "CalendarIntervalType"), reason="PySpark 3.5 cannot name this type"
    ),
)


@pytest.mark.parametrize("interval", ["INTERVAL '1' DAY", "INTERVAL '1' YEAR", CALENDAR_INTERVAL])
@pytest.mark.parametrize("value", ["{}", "array({})", "named_struct('x', {})"])
def test_an_interval_is_refused(
    spark: SparkSession, storage: WarehouseStorage, interval: str, value: str
) -> None:
    frame = spark.sql(f"SELECT {value.format(interval)} AS gap")

    with pytest.raises(NotSupportedError, match="gap"):
        materialized(spark, frame, ["gap"], storage)


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("folder", ORDERS, partitioned=False)


@pytest.mark.slow
def test_clauses_see_the_same_random_values(harness: Harness) -> None:
    random = Behaviour(
        "",
        "(SELECT id, uuid() AS u, CAST(rand() * 1000000 AS INT) AS r FROM range(90, 110)) AS s",
        (
            matched(update(v="s.u", req="s.u", n="s.r", k="s.r")),
            not_matched(insert(id="s.id", v="s.u", req="s.u", n="s.r", k="s.r")),
        ),
    )

    result = Job(request_of(random, harness), harness.spark, harness.open()).run()

    assert (result.metrics.updated, result.metrics.inserted) == (10, 10), result.error
    changed = [row for row in harness.read() if 90 <= row["id"] < 110]
    assert len(changed) == 20
    assert all((row["v"], row["n"]) == (row["req"], row["k"]) for row in changed)
    assert len({row["v"] for row in changed}) == 20


def test_a_random_value_is_drawn_for_each_row(harness: Harness) -> None:
    random = Behaviour("", "(SELECT id FROM range(100, 110)) AS s", (matched(update(v="uuid()")),))

    Job(request_of(random, harness), harness.spark, harness.open()).run()

    drawn = [row["v"] for row in harness.read() if 100 <= row["id"] < 110]
    assert len(set(drawn)) == 10


def test_a_source_file_without_rows(harness: Harness, tmp_path: Path) -> None:
    file = tmp_path / "empty.csv"
    file.write_text("id,v\n")
    statement = Behaviour("", "s", (matched(update(v="s.v")),))
    source = FileSource("s", str(file), "csv", {"header": "true"}, "id BIGINT, v STRING")

    request = replace(request_of(statement, harness), sources=(source,))
    result = Job(request, harness.spark, harness.open()).run()

    assert (result.status, result.metrics.source_rows) == ("unchanged", 0), result.error


@dataclass(frozen=True)
class Racing:
    """The metadata of a connector, whose tables grow whenever they are loaded."""

    real: Any
    grow: Callable[[], None]
    loaded: list[TableName]

    def load_table(self, name: TableName) -> TableHandle:
        handle: TableHandle = self.real.load_table(name)
        self.loaded.append(name)
        self.grow()
        return handle

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@pytest.mark.by_turns(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        delete_from("", "id = (SELECT max(id) FROM target) OR id IN (SELECT max(id) FROM again)"),
        Behaviour("", "(SELECT max(id) AS id FROM again) AS s", (matched(delete()),)),
    ],
    ids=["delete", "merge"],
)
def test_a_table_is_pinned_once_as_target_and_as_source(
    statement: Behaviour, harness: Harness
) -> None:
    connector = harness.open()
    racing = Racing(connector.metadata, lambda: harness.append([order(999, "c")]), [])
    request = request_of(statement, harness)
    itself = (TableSource("target", TARGET), TableSource("again", TARGET))
    request = replace(request, sources=(*itself, request.sources[-1]))

    result = Job(request, harness.spark, replace(connector, metadata=racing)).run()

    # What is appended after the table was pinned is a conflict; loaded again in the same attempt,
    # it would be read.
    assert result.error is not None
    assert result.error.code == "COMMIT_CONFLICT"
    assert racing.loaded == [TARGET] * ATTEMPTS
    assert harness.read().count(order(404, None)) == 1
