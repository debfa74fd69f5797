"""Overwrites that do not fit the table's partitions: a clear error, and nothing has happened."""

from __future__ import annotations

import datetime as dt

import pytest

from spark_jobs.contract.inserts import InsertOverwriteSpec, PartitionStatement, TruncateTableSpec
from spark_jobs.contract.statements import ColumnSpec, InsertAllAction, MergeCase
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import Behaviour, fails
from tests.conformance.check import check, request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.tables import ORDERS, SeedTable
from tests.support.insert_paths import InsertPath, forced_insert_path

pytestmark = pytest.mark.slow

CONNECTOR = "append-cow"
DATED = SeedTable(
    "dated",
    (ColumnSpec("id", "BIGINT"), ColumnSpec("p", "DATE")),
    tuple(({"id": day, "p": dt.date(2026, 1, day)},) for day in (1, 2)),
)
ORDER = "VALUES (1, 11, 'x', 3, 'r', 'a') AS s(id, k, v, n, req, p)"
DATE_FROM_TEXT = "VALUES (1, '31.01.2026') AS s(id, p)"


def overwrite(mode: str, **more: object) -> InsertOverwriteSpec:
    return InsertOverwriteSpec("s", mode, **more)  # type: ignore[arg-type]


def test_dynamic_without_partitions_names_the_remedy(make_table: MakeTable) -> None:
    harness = make_table(CONNECTOR, ORDERS, partitioned=False)
    failure = fails(ErrorCode.NOT_SUPPORTED, "mode dynamic replaces partitions", "db.target")
    behaviour = Behaviour("", ORDER, (), statement=overwrite("dynamic"), fails=failure)

    check(behaviour, harness)

    again = Job(request_of(behaviour, harness), harness.spark, harness.open()).run()
    assert again.error is not None
    assert again.error.remedy == "Use mode table to replace all rows."


@pytest.mark.parametrize(
    "statement", [overwrite("static", partition={"p": "'a'"}), TruncateTableSpec({"p": "'a'"})]
)
def test_a_spec_without_partitions(make_table: MakeTable, statement: PartitionStatement) -> None:
    harness = make_table(CONNECTOR, ORDERS, partitioned=False)
    failure = fails(ErrorCode.COLUMN_NOT_FOUND, "PARTITION: db.target has no partitions")

    check(Behaviour("", ORDER, (), statement=statement, fails=failure), harness)


@pytest.mark.parametrize(
    ("statement", "code", "says"),
    [
        (
            overwrite("static", partition={"p": "'31.01.2026'"}),
            ErrorCode.VALUE_NOT_STORABLE,
            ("PARTITION", "p", "31.01.2026"),
        ),
        (
            overwrite("static", partition={"p": "31"}),
            ErrorCode.TYPE_MISMATCH,
            ("PARTITION", "p", "int cannot be stored as date"),
        ),
        (
            overwrite("dynamic", expected_partitions=({"p": "'2026-02-30'"},)),
            ErrorCode.VALUE_NOT_STORABLE,
            ("expected_partitions[0]", "p", "2026-02-30"),
        ),
        (overwrite("dynamic"), ErrorCode.VALUE_NOT_STORABLE, ("p", "31.01.2026")),
    ],
    ids=["spec", "spec of another type", "expected partition", "rows"],
)
def test_a_value_that_is_no_date(
    make_table: MakeTable, statement: PartitionStatement, code: ErrorCode, says: tuple[str, ...]
) -> None:
    harness = make_table(CONNECTOR, DATED, partitioned=True)
    source = "VALUES (1) AS s(id)" if "static" in repr(statement) else DATE_FROM_TEXT

    check(Behaviour("", source, (), statement=statement, fails=fails(code, *says)), harness)


_FAR_DATE = "(SELECT 9L AS id, DATE'+10000-01-01' AS p) AS s"
_IS_FAR = fails(ErrorCode.VALUE_NOT_STORABLE, "p", "outside of the years 1 to 9999")


@pytest.mark.parametrize("connector", [CONNECTOR, "iceberg-cow"])
@pytest.mark.parametrize("path", ["streamed", "materialised"])
def test_a_partition_that_python_has_no_date_for(
    make_table: MakeTable, path: InsertPath, connector: str
) -> None:
    harness = make_table(connector, DATED, partitioned=True)

    with forced_insert_path(path):
        behaviour = Behaviour("", _FAR_DATE, (), statement=overwrite("dynamic"), fails=_IS_FAR)
        check(behaviour, harness)


def test_a_merge_into_a_partition_that_python_has_no_date_for(make_table: MakeTable) -> None:
    harness = make_table(CONNECTOR, DATED, partitioned=True)
    new = MergeCase("not_matched", InsertAllAction())

    check(Behaviour("", _FAR_DATE, (new,), fails=_IS_FAR), harness)
