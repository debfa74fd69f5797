"""Text that a statement stores is UTF-8; text that it does not assign is left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import FileSource, JobRequest, Source, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import Assignment, ColumnSpec, MergeSpec, Statement, UpdateSpec
from spark_jobs.engine.job.statement_job import Job
from tests.conformance.behaviour import insert, matched, not_matched, update
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import SeedTable

MakeTable = Callable[..., Harness]

TABLE = SeedTable(
    "texts",
    (
        ColumnSpec("id", "BIGINT"),
        ColumnSpec("s", "STRING"),
        ColumnSpec("other", "STRING"),
        ColumnSpec("n", "INT"),
        ColumnSpec("list", "ARRAY<STRING>"),
        ColumnSpec("map", "MAP<STRING, INT>"),
        ColumnSpec("st", "STRUCT<a: STRING, b: INT>"),
        ColumnSpec("p", "STRING"),
    ),
)
BAD = "CAST(X'61ff' AS STRING)"
ROW = "1L AS id, 'x' AS s, 'y' AS other, 1 AS n, array('x') AS list, map('k', 1) AS map"
STRUCT = "named_struct('a', 'x', 'b', 1) AS st, 'a' AS p"
CODE = "VALUE_NOT_STORABLE"
KINDS = pytest.mark.parametrize("kind", ["folder", "append-dv"])


def run(harness: Harness, statement: Statement, *sources: Source, number: int = 1) -> JobResult:
    request = JobRequest(
        operation_id=f"operation-{number}",
        target=TARGET,
        catalog=harness.catalog,
        statement=statement,
        sources=sources,
        options=JobOptions(),
        after_ended_try="run",
    )
    return Job(request, harness.spark, harness.open()).run()


def one_row(harness: Harness) -> None:
    """Store the row 1."""
    result = run(
        harness, InsertIntoSpec("s", by_name=True), SqlSource("s", f"SELECT {ROW}, {STRUCT}")
    )
    assert result.error is None, result.error


def refused(result: JobResult, place: str) -> None:
    assert result.error is not None
    assert result.error.code == CODE, result.error
    assert f"{place} string cannot hold bytes that are not UTF-8: 'a\\xff'" in result.error.message


VALUES = {
    "s": BAD,
    "list": f"array('x', {BAD})",
    "map": f"map({BAD}, 1)",
    "st": f"named_struct('a', {BAD}, 'b', 1)",
    "p": f"concat('', substring({BAD}, 1))",
}


@KINDS
@pytest.mark.parametrize("column", VALUES)
def test_an_insert_of_bytes(make_table: MakeTable, kind: str, column: str) -> None:
    harness = make_table(kind, TABLE, partitioned=kind == "append-dv")
    source = SqlSource("s", f"SELECT id, {VALUES[column]} AS {column} FROM range(3)")
    if column != "p":
        source = SqlSource("s", f"SELECT id, {VALUES[column]} AS {column}, 'a' AS p FROM range(3)")

    refused(run(harness, InsertIntoSpec("s", by_name=True), source), f"INSERT: column {column}")

    assert harness.read() == []


@KINDS
@pytest.mark.parametrize("column", VALUES)
def test_an_update_with_bytes(make_table: MakeTable, kind: str, column: str) -> None:
    harness = make_table(kind, TABLE, partitioned=False)
    one_row(harness)
    before = harness.read()
    spec = UpdateSpec("t", (Assignment("n", "2"), Assignment(column, VALUES[column])), "id = 1")

    refused(run(harness, spec, number=2), f"UPDATE: column {column}")

    assert harness.read() == before


def test_a_field_of_a_struct(make_table: MakeTable) -> None:
    harness = make_table("append-dv", TABLE, partitioned=False)
    one_row(harness)

    spec = UpdateSpec("t", (Assignment("st.a", BAD),))

    refused(run(harness, spec, number=2), "UPDATE: column st.a")


@pytest.mark.parametrize("source_rows", [1, 0], ids=["located", "general"])
def test_a_clause_of_a_merge(make_table: MakeTable, source_rows: int) -> None:
    harness = make_table("append-dv", TABLE, partitioned=False)
    one_row(harness)
    before = harness.read()
    query = f"SELECT id, {BAD} AS s FROM range({1 if source_rows else 0}, 3)"
    clauses = (
        matched(update(n="5"), condition="s.id = 9"),
        matched(update(s="s.s")),
        not_matched(insert(id="s.id", s="'x'")),
    )
    spec = MergeSpec("s", "t.id = s.id", clauses, "t", "s")

    refused(run(harness, spec, SqlSource("s", query), number=2), "clause 2: column s")

    assert harness.read() == before


def bytes_as_text(*values: bytes) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values).buffers())


@pytest.mark.parametrize("statement", ["insert", "overwrite", "query"])
def test_a_parquet_file_with_other_bytes(
    make_table: MakeTable, tmp_path: Path, statement: str
) -> None:
    harness = make_table("append-cow", TABLE, partitioned=False)
    path = tmp_path / "one.parquet"
    columns: dict[str, Any] = {"id": [1], "s": bytes_as_text(b"a\xff"), "other": ["x"]}
    pq.write_table(pa.table(columns), path)
    sources: Sequence[Source] = [FileSource("s", str(path), "parquet")]
    spec: Statement = InsertIntoSpec("s", by_name=True)
    if statement == "overwrite":
        spec = InsertOverwriteSpec("s", by_name=True, mode="table")
    elif statement == "query":
        sources = [FileSource("files", str(path), "parquet"), SqlSource("s", "SELECT * FROM files")]

    refused(run(harness, spec, *sources), "INSERT: column s")
    assert harness.read() == []


def test_bytes_that_are_declared_as_text(make_table: MakeTable, tmp_path: Path) -> None:
    harness = make_table("folder", TABLE, partitioned=False)
    path = tmp_path / "one.parquet"
    pq.write_table(pa.table({"id": [1], "s": [b"a\xff"]}), path)
    source = FileSource("s", str(path), "parquet", schema="id BIGINT, s STRING")

    refused(run(harness, InsertIntoSpec("s", by_name=True), source), "INSERT: column s")
