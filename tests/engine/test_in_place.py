"""Sources that are read in place: the same rows and counts, and no others if files change."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.contract.request import (
    FileSource,
    JobRequest,
    Source,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec, MergeSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.general_plan import GeneralPlan, PlanResult
from spark_jobs.engine.merge.located_plan import LocatedPlan
from spark_jobs.engine.merge.physical_plan import Plan, PlanLimits
from spark_jobs.engine.source.in_place import in_place, is_settled
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.engine.source.open_source import open_source
from spark_jobs.engine.source.pinned_tables import PinnedTables
from spark_jobs.engine.write.change_writer import ChangeWriter
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import delete, insert, matched, not_matched, update
from tests.conformance.connectors import HARNESSES
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS

pytestmark = pytest.mark.slow
ROWS = pa.table(
    {
        "id": pa.array(range(100, 112), pa.int64()),
        "v": pa.array(["new"] * 11 + [None]),
        "often": pa.array(["x" * 50] * 12).dictionary_encode(),
    }
)
CLAUSES = (matched(update(v="s.v")), not_matched(insert(id="s.id", v="s.v", req="'r'")))


@pytest.fixture
def harness(make_table: Callable[..., Harness]) -> Harness:
    return make_table("append-cow", ORDERS, partitioned=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "changes.parquet"
    pq.write_table(ROWS, path, row_group_size=5)
    return path


def found(harness: Harness, source: Source, *columns: str) -> MaterializedSource | None:
    opened = open_source(harness.spark, source, harness.connector, PinnedTables())
    return in_place(harness.spark, opened, columns, harness.connector)


def merged(harness: Harness, *sources: Source, plan: Plan | None = None) -> JobResult:
    statement = MergeSpec("s", "t.id = s.id", CLAUSES, "t", "s")
    request = JobRequest("in-place", TARGET, harness.catalog, statement, sources)
    return Job(request, harness.spark, harness.open(), limits=PlanLimits(plan=plan)).run()


def test_parquet_files_are_read_in_place(harness: Harness, file: Path) -> None:
    source = found(harness, FileSource("s", str(file), "parquet"), "v", "id", "often")

    assert source is not None
    assert source.row_count == 12
    assert sorted(source.frame.select("id").collect()) == [(n,) for n in range(100, 112)]
    assert source.frame.columns == ["id", "often", "v"]
    assert 12 * (8 + 50 + 3) <= source.byte_size <= 12 * (8 + 50 + 3 + 20)
    values = source.values(["id", "id"])
    assert values is not None
    assert [each.to_pylist() for each in values] == [list(range(100, 112))] * 2


def test_later_rows_that_are_larger_count(harness: Harness, tmp_path: Path) -> None:
    path = tmp_path / "growing.parquet"
    texts = ["x"] * 1_000 + [f"{number:01000}" for number in range(1_000)]
    rows = pa.table({"id": pa.array(range(2_000), pa.int64()), "v": texts})
    pq.write_table(rows, path, row_group_size=100, compression="zstd")

    source = found(harness, FileSource("s", str(path), "parquet"), "v", "id")

    assert path.stat().st_size < 100_000
    assert source is not None
    assert source.byte_size >= 1_000_000


def test_a_merge_does_the_same_as_with_an_evaluated_source(
    harness: Harness, file: Path, tmp_path: Path
) -> None:
    shutil.copytree(harness.warehouse, tmp_path / "copy")
    other = HARNESSES["append-cow"](harness.spark, tmp_path / "copy", partitioned=False)
    path, query = FileSource("files", str(file), "parquet"), SqlSource("s", "SELECT * FROM files")

    result = merged(harness, replace(path, name="s"))
    evaluated = merged(other, path, query)

    assert result.error is None, result.error
    assert (result.metrics.inserted, result.metrics.updated) == (2, 10)
    for name in ("source_rows", "matched", "inserted", "updated", "deleted", "files_rewritten"):
        assert getattr(result.metrics, name) == getattr(evaluated.metrics, name), name
    assert sorted(map(str, harness.read())) == sorted(map(str, other.read()))


@pytest.mark.parametrize(
    ("plan", "kind"), [("join", GeneralPlan), ("located", LocatedPlan), ("prepared", LocatedPlan)]
)
def test_a_file_that_is_written_again_meanwhile_changes_nothing(
    plan: Plan, kind: type, harness: Harness, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = kind.run
    before = harness.state()

    def overtaken(self: GeneralPlan | LocatedPlan, writer: ChangeWriter) -> PlanResult:
        result: PlanResult = run(self, writer)
        pq.write_table(ROWS.slice(1), file)
        return result

    monkeypatch.setattr(kind, "run", overtaken)
    result = merged(harness, FileSource("s", str(file), "parquet"), plan=plan)

    assert result.error is not None
    assert result.error.code == ErrorCode.SOURCE_UNREADABLE.name
    assert "written again" in result.error.message
    after = harness.state()
    assert (after.rows, after.files, after.on_disk) == (before.rows, before.files, before.on_disk)


@pytest.mark.parametrize(
    "source",
    [
        SqlSource("s", "SELECT rand() AS id, 'x' AS v"),
        FileSource("s", "{}", "parquet", {"mergeSchema": "true"}),
        FileSource("s", "{}", "parquet", schema="id BIGINT, v CHAR(5), often STRING"),
    ],
)
def test_other_sources_are_evaluated_once(harness: Harness, file: Path, source: Source) -> None:
    if isinstance(source, FileSource):
        source = replace(source, path=source.path.format(file))

    assert found(harness, source, "id", "v") is None


def test_a_column_from_folder_names_is_not_read_from_files(
    harness: Harness, tmp_path: Path
) -> None:
    folder = tmp_path / "landing" / "id=7"
    folder.mkdir(parents=True)
    pq.write_table(ROWS, folder / "one.parquet")

    assert found(harness, FileSource("s", str(folder.parent), "parquet"), "id") is None


def test_many_files_are_not_looked_at_one_by_one(harness: Harness, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(101):
        pq.write_table(ROWS.slice(0, 1), folder / f"{number}.parquet")

    assert found(harness, FileSource("s", str(folder), "parquet"), "id") is None


def test_young_files_of_a_store_that_tells_seconds_are_evaluated_once(file: Path) -> None:
    local = pafs.LocalFileSystem()
    store = pafs.SubTreeFileSystem(str(file.parent), local)

    assert is_settled(local, [local.get_file_info(str(file))])
    assert not is_settled(store, [store.get_file_info(file.name)])
    os.utime(file, (time.time() - 60, time.time() - 60))
    assert is_settled(store, [store.get_file_info(file.name)])


def test_files_without_rows(harness: Harness, file: Path) -> None:
    pq.write_table(ROWS.slice(0, 0), file)

    source = found(harness, FileSource("s", str(file), "parquet"), "id")

    assert source is not None
    assert (source.row_count, source.byte_size) == (0, 0)
    result = merged(harness, FileSource("s", str(file), "parquet"))
    assert (result.status, result.metrics.source_rows) == ("unchanged", 0), result.error


def test_no_column_is_needed(harness: Harness, file: Path) -> None:
    source = found(harness, FileSource("s", str(file), "parquet"))

    assert source is not None
    assert (source.row_count, source.frame.count(), source.frame.columns) == (12, 12, [])


@pytest.mark.parametrize("kind", ["append-cow", "append-dv"])
def test_a_table_is_read_in_place_without_its_deleted_rows(
    make_table: Callable[..., Harness], kind: str
) -> None:
    harness = make_table(kind, ORDERS, partitioned=False)
    source = TableSource("s", TARGET)
    removal = MergeSpec("s", "t.id = s.id", (matched(delete(), "t.n = 1"),), "t", "s")
    request = JobRequest("delete", TARGET, harness.catalog, removal, (source,))

    deleted = Job(request, harness.spark, harness.open()).run()

    assert deleted.error is None, deleted.error
    assert deleted.metrics.source_rows == len(ORDERS.rows)
    here = found(harness, source, "id", "v")
    assert here is not None
    left = len(ORDERS.rows) - deleted.metrics.deleted
    assert here.row_count == here.frame.count() == left
    assert here.byte_size >= left * 8


def test_a_table_with_a_char_column_that_is_read(harness: Harness) -> None:
    name = TableName("db", "other")
    spec = CreateTableSpec((ColumnSpec("id", "INT"), ColumnSpec("v", "CHAR(3)")))
    harness.connector.metadata.create_table(name, spec)

    assert found(harness, TableSource("s", name), "v") is None
    assert found(harness, TableSource("s", name), "id") is not None
