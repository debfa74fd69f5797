"""TRUNCATE and DROP PARTITION without a session: the same partitions, guarantees and errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.command import main
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import (
    ClearingStatement,
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    TruncateTableSpec,
)
from spark_jobs.contract.job_lines import answer_name
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, SqlSource, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.run import run
from spark_jobs.spi.connector import Connector
from tests.engine.test_conflicts import Writes
from tests.support.paimon_tables import NAME, append, create, data_files, read, snapshot_ids

DAY, OTHER = dt.date(2026, 1, 31), dt.date(1582, 10, 10)
FIRST_DAY = TruncateTableSpec({"DAY": f"'{DAY}'"})

# By the type of a partition column: its values, and which of them a constant stands for.
MEANT: Mapping[str, tuple[list[Any], dict[str, Any]]] = {
    "string": (
        ["a", "A", " a", "a ", "007", "7", "true", "TRUE", "NULL", None, str(DAY), "%"],
        {
            "'a'": "a",
            "' a'": " a",
            "'a '": "a ",
            "'007'": "007",
            "007": "7",
            "TRUE": "true",
            "'TRUE'": "TRUE",
            "'NULL'": "NULL",
            "NULL": None,
            f"DATE '{DAY}'": str(DAY),
            "'%'": "%",
        },
    ),
    "varchar(3)": (["a", "a  ", None], {"'a'": "a", "'a  '": "a  ", "null": None}),
    "int": ([7, -7, 0, None], {"'007'": 7, "'+7'": 7, "007": 7, "'-7'": -7, "-0": 0, "NULL": None}),
    "bigint": ([7, 2**31, None], {"'2147483648'": 2**31, "2147483648": 2**31, "7": 7}),
    "date": ([DAY, OTHER, None], {f"'{DAY}'": DAY, f"date'{OTHER}'": OTHER, "NULL": None}),
    "boolean": ([True, False, None], {"'false'": False, "TRUE": True, "NULL": None}),
}


def opened(warehouse: Path) -> Connector:
    return open_connector(CatalogSpec("paimon", str(warehouse)), {})


def request(warehouse: Path, statement: ClearingStatement = FIRST_DAY, **more: Any) -> JobRequest:
    return JobRequest("clear-1", NAME, CatalogSpec("paimon", str(warehouse)), statement, **more)


def ids(warehouse: Path) -> list[int]:
    return [row["id"] for row in read(opened(warehouse))]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A table with the rows 1 and 2 in a partition, 3 in another, and 4 in that of NULL."""
    connector = opened(tmp_path)
    create(connector, {"id": "int", "Day": "date"}, ["Day"])
    days = {1: DAY, 2: DAY, 3: OTHER, 4: None}
    append(connector, [{"id": id_, "Day": day} for id_, day in days.items()])
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("declared", MEANT)
def test_a_plain_constant_is_the_partition_that_spark_finds(
    declared: str, tmp_path: Path, spark: SparkSession
) -> None:
    connector, (values, meant) = opened(tmp_path), MEANT[declared]
    create(connector, {"id": "int", "Part": declared}, ["Part"])
    # Each partition has a number of rows of its own.
    counts = {value: count for count, value in enumerate(values, 1)}
    rows = [{"id": n, "Part": value} for value, count in counts.items() for n in range(count)]
    append(connector, rows)

    for text, value in meant.items():
        plain = run(request(tmp_path, TruncateTableSpec({"`pART`": text}), dry_run=True), None)
        # A function is no plain constant.
        evaluated = TruncateTableSpec({"`pART`": f"coalesce({text})"})
        by_spark = run(request(tmp_path, evaluated, dry_run=True), spark)

        assert plain.error is by_spark.error is None
        assert plain.metrics.deleted == by_spark.metrics.deleted == counts[value], text
        assert plain.partitions == by_spark.partitions


@pytest.mark.parametrize("has_answer", [True, False])
def test_the_main_program_needs_no_session(warehouse: Path, has_answer: bool) -> None:
    path = warehouse / "request.json"
    path.write_text(request(warehouse).to_json())
    answers = ["--answers", str(warehouse)] if has_answer else []
    (warehouse / answer_name("clear-1")).touch()

    assert main(["--no-session", "--request", str(path), *answers]) == 0

    result = JobResult.from_json((warehouse / "_operations/clear-1.json").read_text())
    assert (result.status, result.base_snapshot_id, result.new_snapshot_id) == ("committed", 1, 2)
    assert (result.metrics.deleted, result.metrics.files_removed) == (2, 1)
    assert result.partitions == ("Day=2026-01-31",)
    assert ids(warehouse) == [3, 4]


def test_the_whole_table(warehouse: Path) -> None:
    assert run(request(warehouse, TruncateTableSpec()), None).metrics.deleted == 4

    assert ids(warehouse) == []
    again = run(replace(request(warehouse, TruncateTableSpec()), operation_id="clear-2"), None)
    assert again.status == "unchanged"


def test_a_branch(warehouse: Path) -> None:
    manager = opened(warehouse).metadata.load_table(NAME).native.table.branch_manager()
    manager.create_branch("b")
    branch = TableName(NAME.database, f"{NAME.table}$branch_b")
    append(opened(warehouse), [{"id": 9, "Day": DAY}, {"id": 8, "Day": OTHER}], name=branch)

    result = run(replace(request(warehouse), target=branch), None)

    assert (result.error, result.metrics.deleted) == (None, 1)
    assert [row["id"] for row in read(opened(warehouse), branch)] == [8]
    assert ids(warehouse) == [1, 2, 3, 4]


def test_a_retry_finds_what_was_committed(warehouse: Path) -> None:
    result = run(request(warehouse), None)
    (warehouse / "_operations/clear-1.json").unlink()
    append(opened(warehouse), [{"id": 5, "Day": DAY}], "other")

    again = run(request(warehouse, origin=Origin(try_number=2)), None)

    assert (again.new_snapshot_id, again.metrics.deleted) == (result.new_snapshot_id, 2)
    assert ids(warehouse) == [3, 4, 5]


@pytest.mark.parametrize("wins", [False, True])
def test_a_conflict(warehouse: Path, wins: bool) -> None:
    connector, others = opened(warehouse), [[{"id": 5, "Day": DAY}, {"id": 6, "Day": OTHER}]]

    def append_once() -> None:
        while others:
            append(opened(warehouse), others.pop(), "other")

    racing = Writes(connector.writes, begun=append_once)
    asked = request(warehouse, replace(FIRST_DAY, last_writer_wins=wins))

    result = Job(asked, None, replace(connector, writes=racing)).run()

    assert (result.status, result.metrics.attempts) == ("committed", 1 if wins else 2)
    assert result.metrics.deleted == 3
    assert ids(warehouse) == [3, 4, 6]
    assert not list((warehouse / "_operations").glob("clear-1-*"))


def test_a_task_that_was_ended_publishes_nothing(warehouse: Path, tmp_path: Path) -> None:
    (tmp_path / answer_name("clear-1")).write_text("marked as failed")

    result = Job(request(warehouse), None, opened(warehouse), answers=tmp_path).run()

    assert result.error is not None
    assert result.error.code == "RUN_GIVEN_UP"
    assert ids(warehouse) == [1, 2, 3, 4]
    assert snapshot_ids(opened(warehouse)) == [1]


def test_a_dry_run_leaves_nothing(warehouse: Path) -> None:
    before = set(warehouse.rglob("*"))

    result = run(request(warehouse, dry_run=True), None)

    assert (result.status, result.metrics.deleted) == ("dry_run", 2)
    assert result.partitions == ("Day=2026-01-31",)
    assert set(warehouse.rglob("*")) == before


@pytest.mark.parametrize(
    ("statement", "code", "says"),
    [
        (
            DropPartitionsSpec(({"day": f"'{DAY}'"}, {"day": "'2020-01-01'"})),
            "PARTITION_NOT_FOUND",
            "no partition Day = DATE '2020-01-01'",
        ),
        (TruncateTableSpec({"id": "1"}), "COLUMN_NOT_FOUND", "id is not a partition column"),
        (TruncateTableSpec({"q": "a + 1"}), "COLUMN_NOT_FOUND", "q is not a column"),
        (
            TruncateTableSpec({"day": "'2026-1-31'"}),
            "REQUEST_INVALID",
            "PARTITION: Day: '2026-1-31' needs a Spark session",
        ),
        (
            TruncateTableSpec({"day": "'31.01.2026'"}),
            "VALUE_NOT_STORABLE",
            "PARTITION: Day: '31.01.2026' is not a DATE",
        ),
    ],
)
def test_what_is_refused(
    warehouse: Path, statement: ClearingStatement, code: str, says: str
) -> None:
    before = data_files(warehouse)

    result = run(request(warehouse, statement), None)

    assert result.error is not None
    assert result.error.code == code
    assert says in result.error.message
    assert ids(warehouse) == [1, 2, 3, 4]
    assert data_files(warehouse) == before


@pytest.mark.slow
@pytest.mark.parametrize("text", ["'2026-01'", "'2026'", "'2026-01-31 or so'"])
@pytest.mark.parametrize(
    "statement",
    [
        TruncateTableSpec,
        lambda spec: DropPartitionsSpec((spec,), if_exists=True),
        lambda spec: InsertOverwriteSpec("s", "static", spec),
        lambda spec: InsertOverwriteSpec("s", "dynamic", expected_partitions=(spec,)),
        lambda spec: InsertIntoSpec("s", partition=spec),
    ],
    ids=["truncate", "drop", "overwrite", "expected", "insert"],
)
def test_a_month_is_not_its_first_day(
    warehouse: Path, spark: SparkSession, statement: Any, text: str
) -> None:
    source = SqlSource("s", "SELECT 5 AS id, DATE '2026-01-01' AS day")
    asked = request(warehouse, statement({"day": text}), sources=(source,))
    if not hasattr(asked.statement, "source"):
        asked = replace(asked, sources=())

    error = run(asked, spark).error

    assert error is not None
    assert error.code == "VALUE_NOT_STORABLE"
    assert f"{text} is not a DATE" in error.message
    assert ids(warehouse) == [1, 2, 3, 4]
