"""What an overwrite leaves of a Paimon table: kind of snapshot, deletion vectors, files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    PartitionStatement,
)
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, DeleteSpec, Statement
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS, SeedTable

MakeTable = Callable[..., Harness]
ROWS = "SELECT id, CAST(id AS INT) AS k, 'v' AS v, 1 AS n, 'r' AS req, {p} AS p FROM range({n})"


def run(
    harness: Harness, name: str, statement: Statement, rows: str = "", **options: Any
) -> JobResult:
    """Run a statement that reads ``s``."""
    sources = (SqlSource("s", rows),) if rows else ()
    request = JobRequest(name, TARGET, harness.catalog, statement, sources, JobOptions(**options))
    result = Job(request, harness.spark, harness.open()).run()
    assert result.error is None, result.error
    return result


def kind_of_latest(harness: Harness) -> str:
    folder = harness.warehouse / "db.db" / "target" / "snapshot"
    path = folder / f"snapshot-{harness.latest_snapshot()}"
    return str(json.loads(path.read_text())["commitKind"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        (InsertOverwriteSpec("s", "dynamic"), "OVERWRITE"),
        (InsertIntoSpec("s"), "APPEND"),
    ],
    ids=["overwrite", "insert"],
)
def test_an_overwrite_is_one_even_where_nothing_was(
    make_table: MakeTable, statement: PartitionStatement, kind: str
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)

    run(harness, "one", statement, ROWS.format(p="'new'", n=2))

    assert kind_of_latest(harness) == kind


@pytest.mark.slow
@pytest.mark.parametrize("connector", ["append-dv", "bucketed-dv"])
def test_vectors_of_replaced_files_go_and_others_stay(
    make_table: MakeTable, connector: str
) -> None:
    harness = make_table(connector, ORDERS, partitioned=True)
    run(harness, "delete", DeleteSpec("t", "id IN (101, 121, 222, 141)"), rewrite_share=1.0)
    assert sum(file.deleted for file in harness.state().files.values()) == 4

    run(harness, "drop", DropPartitionsSpec(({"p": "'c'"},)))
    run(harness, "new", InsertOverwriteSpec("s", "dynamic"), ROWS.format(p="'a'", n=2))

    after = harness.state()
    deleted = [file for file in after.files.values() if file.deleted]
    assert sum(file.deleted for file in deleted) == 2
    assert {row["p"] for file in deleted for row in file.rows} == {"b"}
    kept = {row["id"] for row in ORDERS.rows if row["p"] in ("b", None)} - {121, 222}
    assert {row["id"] for row in after.rows} == {0, 1, *kept}
    # No index file is left that marks rows of files which are gone.
    table = harness.connector.metadata.load_table(TARGET)
    marked = {name for index in table.native.files.index_files for name in index.vectors}
    assert marked == {Path(path).name for path, file in after.files.items() if file.deleted}


@pytest.mark.slow
def test_many_partitions_get_one_file_each_and_share_tasks(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)

    result = run(
        harness,
        "many",
        InsertOverwriteSpec("s", "table", order_by=("id DESC",)),
        ROWS.format(p="concat('p', id % 150)", n=3000),
    )

    assert result.metrics.files_added == 150
    files = harness.state().files.values()
    assert Counter(len({row["p"] for row in file.rows}) for file in files) == {1: 150}
    assert {len(file.rows) for file in files} == {20}
    for file in files:
        found = [row["id"] for row in file.rows]
        assert found == sorted(found, reverse=True)


@pytest.mark.slow
def test_a_big_partition_fills_files_of_the_target_size(make_table: MakeTable) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=False)

    long = ROWS.replace("'v' AS v", "sha2(CAST(id AS STRING), 256) AS v").format(p="'a'", n=60000)
    run(harness, "big", InsertOverwriteSpec("s", "table"), long, target_file_size=2**20)

    sizes = [file.size for file in harness.state().files.values()]
    assert len(harness.state().rows) == 60000
    # 64 hexadecimal digits a row are half a megabyte for each 15,000 rows.
    assert 2 <= len(sizes) <= 6
    assert max(sizes) < 2 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("VARCHAR(5)", "'a'"),
        ("CHAR(3)", "'abc'"),
        ("INT", "7"),
        ("BOOLEAN", "true"),
        ("DATE", "DATE '2026-02-28'"),
        ("DECIMAL(9, 2)", "1.50"),
        ("DOUBLE", "2.5D"),
        ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ '2026-02-28 12:34:56.789'"),
    ],
)
def test_partitions_of_any_type_are_replaced_from_a_query(
    make_table: MakeTable, declared: str, value: str
) -> None:
    columns = (ColumnSpec("id", "BIGINT"), ColumnSpec("p", declared))
    name = f"by_{declared.partition('(')[0].lower()}"
    harness = make_table("append-cow", SeedTable(name, columns, ()), partitioned=True)
    rows = f"SELECT id, CAST({value} AS {declared}) AS p FROM range({{n}})"
    run(harness, "first", InsertIntoSpec("s"), rows.format(n=3))

    result = run(harness, "second", InsertOverwriteSpec("s", "dynamic"), rows.format(n=2))

    assert (result.metrics.inserted, result.metrics.deleted) == (2, 3)
    assert sorted(row["id"] for row in harness.state().rows) == [0, 1]
