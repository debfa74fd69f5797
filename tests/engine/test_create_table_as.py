"""CREATE TABLE ... AS: the table and its rows, once, whatever is killed in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.inserts import (
    CREATED_BY,
    InsertIntoSpec,
    InsertOverwriteSpec,
    NewTable,
    WhenExists,
)
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import (
    AfterEndedTry,
    CatalogSpec,
    JobRequest,
    Origin,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.engine.job.new_target import NewTarget
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.run import run
from spark_jobs.spi.tables import TableHandle
from tests.support.paimon_tables import NAME
from tests.support.turns import has_turn

ROWS = "SELECT id, CAST(id % 2 AS STRING) AS p FROM range(3)"


class KilledError(BaseException):
    """The driver dies: nothing behind it runs."""


Make = Callable[..., JobResult]


@pytest.fixture
def make(spark: SparkSession, catalog: CatalogSpec) -> Make:
    """Runs CREATE TABLE ... AS; ``tries`` are those of its task."""

    def made(
        operation_id: str = "op-1",
        when_exists: WhenExists = "fail",
        query: str = ROWS,
        tries: int = 1,
        of_run: str = "",
        then: AfterEndedTry = "fail",
        **new: Any,
    ) -> JobResult:
        table = NewTable(when_exists=when_exists, **new)
        statement = (
            InsertOverwriteSpec("q", "table", allow_empty=True, new_table=table)
            if when_exists == "replace"
            else InsertIntoSpec("q", new_table=table)
        )
        origin = Origin("dag", of_run or operation_id, "make", try_number=tries)
        sources = (SqlSource("q", query),)
        request = JobRequest(
            *(operation_id, NAME, catalog, statement, sources), origin=origin, after_ended_try=then
        )
        return run(request, spark)

    return made


def rows(spark: SparkSession, catalog: CatalogSpec, name: TableName = NAME) -> list[list[Any]]:
    sources = (TableSource("t", name), SqlSource("q", "SELECT * FROM t ORDER BY id"))
    found = run(JobRequest("read", None, catalog, QuerySpec("q", limit=100), sources), spark).query
    assert found is not None
    return [list(each) for each in found.rows or ()]


def table_of(catalog: CatalogSpec) -> TableHandle:
    return open_connector(catalog, {}).metadata.load_table(NAME)


THREE = [[0, "0"], [1, "1"], [2, "0"]]


def test_the_table_has_the_columns_and_rows_of_the_query(
    spark: SparkSession, catalog: CatalogSpec, make: Make
) -> None:
    result = make(partition_keys=("P",), comment="made")

    assert result.status == "committed", result.error
    assert result.metrics.inserted == 3
    assert rows(spark, catalog) == THREE
    table = table_of(catalog)
    assert [(each.name, each.nullable) for each in table.columns] == [("id", True), ("p", True)]
    assert [each.name for each in table.partitioned_by] == ["p"]
    assert table.created_by == "op-1"


def test_a_table_of_others_is_an_error_or_left_alone_or_replaced(
    spark: SparkSession, catalog: CatalogSpec, make: Make
) -> None:
    make()
    error = make("op-2").error
    assert error is not None
    assert (error.code, error.retryable) == ("TABLE_EXISTS", False)
    kept = make("op-3", "keep", "SELECT 7 AS other")
    assert kept.status == "unchanged", kept.error
    assert rows(spark, catalog) == THREE

    replaced = make("op-4", "replace", "SELECT 7L AS id, 'x' AS p")
    assert replaced.status == "committed", replaced.error
    assert rows(spark, catalog) == [[7, "x"]]
    emptied = make("op-5", "replace", "SELECT 7L AS id, 'x' AS p WHERE false")
    assert emptied.status == "committed", emptied.error
    assert rows(spark, catalog) == []


OTHERS = {
    "another type": ("SELECT 1 AS id, 'x' AS p", {}, "column id is"),
    "another column": ("SELECT 1L AS id, 'x' AS q", {}, "column q is missing"),
    "one more": ("SELECT 1L AS id, 'x' AS p, 2 AS n", {}, "column n is missing"),
    "another order": ("SELECT 'x' AS p, 1L AS id", {}, "the columns are in the order id, p"),
    "partitions": ("SELECT 1L AS id, 'x' AS p", {"partition_keys": ("p",)}, "partition"),
    "an option": ("SELECT 1L AS id, 'x' AS p", {"table_options": {"a.b": "c"}}, "option a.b"),
}


def test_a_replacement_that_would_be_another_table_is_refused(
    spark: SparkSession, catalog: CatalogSpec, make: Make
) -> None:
    make("op-1", "replace")
    assert rows(spark, catalog) == THREE
    before = table_of(catalog).snapshot_id
    for number, (query, new, told) in enumerate(OTHERS.values()):
        error = make(f"other-{number}", "replace", query, **new).error
        assert error is not None
        assert error.code == "NOT_SUPPORTED"
        assert "CREATE OR REPLACE TABLE would make another table" in error.message
        assert told in error.message
    assert table_of(catalog).snapshot_id == before


def _dies_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(self: NewTarget) -> None:
        raise KilledError

    monkeypatch.setattr(NewTarget, "create", create)


def _dies_between(monkeypatch: pytest.MonkeyPatch) -> None:
    create = NewTarget.create

    def dying(self: NewTarget) -> None:
        create(self)
        raise KilledError

    monkeypatch.setattr(NewTarget, "create", dying)


def _dies_at_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(self: Job, *arguments: Any) -> JobResult:
        raise KilledError

    monkeypatch.setattr(Job, "_changed", changed)


def _dies_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def store(self: OperationLog, result: JobResult) -> None:
        raise KilledError

    monkeypatch.setattr(OperationLog, "store", store)


DEATHS = {
    "before the table": _dies_before,
    "between table and rows": _dies_between,
    "while the rows are written": _dies_at_the_rows,
    "before the result is stored": _dies_behind,
}


CASES: list[tuple[str, WhenExists]] = [
    (death, when) for when in get_args(WhenExists) for death in DEATHS
]


@pytest.mark.parametrize(
    ("death", "when_exists"), [each for n, each in enumerate(CASES) if has_turn(n, 3)]
)
def test_a_retry_finishes_what_a_killed_try_began(
    spark: SparkSession,
    catalog: CatalogSpec,
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    death: str,
    when_exists: WhenExists,
) -> None:
    with monkeypatch.context() as patch:
        DEATHS[death](patch)
        with pytest.raises(KilledError):
            make("op-1", when_exists)

    for tries in (2, 3):
        result = make("op-1", when_exists, tries=tries)
        assert result.status == "committed", result.error
        assert rows(spark, catalog) == THREE


def test_a_cleared_task_finishes_what_its_ended_try_began(
    spark: SparkSession, catalog: CatalogSpec, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        _dies_between(patch)
        with pytest.raises(KilledError):
            make("op-1", "keep", of_run="run")
    result = make("op-2", "keep", tries=2, of_run="run")
    assert result.status == "committed", result.error
    assert rows(spark, catalog) == THREE


def test_a_cleared_task_takes_the_rows_or_finds_the_table(
    spark: SparkSession, catalog: CatalogSpec, make: Make
) -> None:
    """Its statement behind failed: to run CREATE TABLE once more finds a table, as in Spark."""
    assert make("op-1", of_run="run").error is None
    taken = make("op-2", tries=2, of_run="run", then="skip")
    assert taken.status == "committed", taken.error
    again = make("op-3", tries=3, of_run="run", then="run").error
    assert again is not None
    assert again.code == "TABLE_EXISTS"
    assert rows(spark, catalog) == THREE


def test_a_cleared_task_that_dropped_the_table_makes_it_anew(
    spark: SparkSession, catalog: CatalogSpec, make: Make
) -> None:
    """As a file with DROP TABLE in front of it does, when a statement behind it has failed."""
    assert make("op-1", of_run="run").error is None
    assert run(JobRequest("drop", NAME, catalog, DropTableSpec()), None).dropped
    result = make("op-2", tries=2, of_run="run")
    assert result.status == "committed", result.error
    assert rows(spark, catalog) == THREE
    assert table_of(catalog).created_by == "op-2"


def test_a_table_that_was_not_filled_is_nobody_elses(
    spark: SparkSession, catalog: CatalogSpec, make: Make
) -> None:
    """Its rows failed for good: who leaves it alone would never have any."""
    failed = make("op-1", "keep", "SELECT CAST('x' || id AS INT) AS id FROM range(1)")
    assert failed.error is not None
    assert table_of(catalog).snapshot_id is None
    error = make("op-2", "keep").error
    assert error is not None
    assert error.code == "TABLE_EXISTS"
    assert "operation op-1 created it" in error.message


def test_no_rows_are_an_empty_table(spark: SparkSession, catalog: CatalogSpec, make: Make) -> None:
    assert make("op-1", "keep", f"{ROWS} WHERE id < 0").error is None
    assert rows(spark, catalog) == []
    kept = make("op-2", "keep")
    assert kept.status == "unchanged", kept.error


def test_a_table_like_it_is_of_nobody(
    spark: SparkSession, catalog: CatalogSpec, make: Make
) -> None:
    make()
    other = TableName(NAME.database, "other")
    spec = CreateTableSpec(like=str(NAME))
    assert run(JobRequest("like", other, catalog, spec), spark).status == "committed"
    assert open_connector(catalog, {}).metadata.load_table(other).created_by is None


def test_the_property_belongs_to_the_job() -> None:
    with pytest.raises(Exception, match="tells which operation created the table"):
        NewTable(table_options={CREATED_BY: "x"})
