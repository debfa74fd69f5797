"""A connector that declares no MERGE: every change of rows is refused, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    TruncateTableSpec,
)
from spark_jobs.contract.request import JobRequest, SqlSource
from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    DeleteSpec,
    MergeCase,
    MergeSpec,
    Statement,
    UpdateSpec,
)
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import Failure
from tests.conformance.check import OPERATION_ID, check_failure, check_untouched
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS
from tests.support.folder_connector.read_only import read_only

pytestmark = pytest.mark.slow

REFUSED = Failure(ErrorCode.NOT_SUPPORTED, ("db.target", "only reads"))


@pytest.mark.parametrize(
    "statement",
    [
        MergeSpec("s", "t.id = s.id", (MergeCase("matched", DeleteAction()),), "t", "s"),
        DeleteSpec("t", "id = 101"),
        UpdateSpec("t", (Assignment("n", "1"),), "id = 101"),
        InsertIntoSpec("s"),
        InsertOverwriteSpec("s", "dynamic"),
        TruncateTableSpec(),
        DropPartitionsSpec(({"p": "'a'"},)),
    ],
    ids=lambda statement: statement.kind,
)
def test_a_change_of_rows_is_refused(
    make_table: Callable[..., Harness], statement: Statement
) -> None:
    harness = make_table("folder", ORDERS, partitioned=True)
    before = harness.state()
    row = ", ".join(f"CAST(NULL AS {each.type}) AS {each.name}" for each in ORDERS.columns)
    sources = (SqlSource("s", f"SELECT {row}"),)
    request = JobRequest(OPERATION_ID, TARGET, harness.catalog, statement, sources)

    result = Job(request, harness.spark, read_only(harness.open())).run()

    check_failure(result, REFUSED)
    check_untouched(before, harness.state())


def test_rows_are_read(make_table: Callable[..., Harness]) -> None:
    harness = make_table("folder", ORDERS, partitioned=True)
    connector = read_only(harness.open())
    table = connector.metadata.load_table(TARGET)

    files = connector.metadata.plan_files(table)
    frame = connector.scan.read(harness.spark, table, files, ["id"])

    assert sorted(row["id"] for row in frame.collect()) == [row["id"] for row in ORDERS.rows]
