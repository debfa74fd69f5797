"""INSERT OVERWRITE from parquet files whose columns are copied as they are: the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.inserts import InsertOverwriteSpec
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import FileSource, JobRequest
from spark_jobs.contract.statements import ColumnSpec
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.source.copied_files import CopiedFiles, copied_files
from spark_jobs.errors import ErrorCode
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import SeedTable
from tests.support.statement_cost import counted

pytestmark = pytest.mark.slow
MakeTable = Callable[..., Harness]
SMALL = 1_000

SALES = SeedTable(
    "sales",
    (ColumnSpec("id", "BIGINT"), ColumnSpec("note", "STRING"), ColumnSpec("p", "STRING")),
    (({"id": 1, "note": "old", "p": "a"}, {"id": 2, "note": "old", "p": "b"}),),
)
PLAIN = pa.table(
    {
        "flag": [True, None],
        "small": pa.array([-128, None], pa.int8()),
        "big": pa.array([2**63 - 1, None], pa.int64()),
        "real": pa.array([float("nan"), -0.0], pa.float32()),
        "double": pa.array([float("-inf"), None], pa.float64()),
        "amount": pa.array([Decimal("-12345678901234567.89"), None], pa.decimal128(19, 2)),
        "text": ["ü", None],
        "wide": pa.array(["x", None], pa.large_string()),
        "often": pa.array(["x", "x"]).dictionary_encode(),
        "bytes": pa.array([b"\x00\xff", None]),
        "day": [date(1, 1, 1), date(9999, 12, 31)],
        "moment": pa.array([datetime(1500, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "elsewhere": pa.array([0, None], pa.timestamp("us", "America/Caracas")),
        "local": pa.array([-62135596800000000, None], pa.timestamp("us")),
    }
)
MOMENT = pa.table({"at": pa.array([0], pa.timestamp("us"))})
IDS = pa.table({"id": pa.array([1, 2], pa.int64())})


def found(spark: SparkSession, folder: Path, **source: Any) -> CopiedFiles | None:
    given = FileSource("s", str(folder), "parquet", **source)
    frame = spark.read.options(**given.options).parquet(given.path)
    return copied_files(spark, given, frame, None)


def rows_of(files: CopiedFiles, columns: list[int]) -> pa.Table:
    copied = files.rows(columns, 2)
    numbers = pa.RecordBatch.from_pydict({"id": list(range(len(copied.files)))})
    return pa.Table.from_batches(copied.function([numbers]))


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """A folder beside the warehouse."""
    folder = tmp_path / "landing"
    folder.mkdir()
    return folder


def sales(*rows: tuple[int, str, str]) -> pa.Table:
    ids, notes, days = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "note": notes, "p": days})


def overwrite(harness: Harness, folder: Path, mode: str, connector: Any = None) -> Any:
    """So small target files that the tasks which read the files write them."""
    sources = (FileSource("s", str(folder), "parquet"),)
    statement, options = InsertOverwriteSpec("s", mode), JobOptions(target_file_size=SMALL)
    request = JobRequest("copy", TARGET, harness.catalog, statement, sources, options)
    return Job(request, harness.spark, connector or harness.open()).run()


def test_the_rows_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(PLAIN, tmp_path / "one.parquet", row_group_size=1)
    pq.write_table(PLAIN.select(PLAIN.column_names[::-1]), tmp_path / "two %20.parquet")

    files = found(spark, tmp_path)

    assert files is not None
    assert files.row_count == 4
    theirs = spark.read.parquet(str(tmp_path))
    copy = tmp_path / "copy.parquet"
    pq.write_table(rows_of(files, list(range(len(theirs.columns)))), copy)
    ours = spark.read.schema(theirs.schema).parquet(str(copy))
    assert ours.exceptAll(theirs).isEmpty()
    assert theirs.exceptAll(ours).isEmpty()


@pytest.mark.parametrize(("groups", "tasks"), [(8, 2), (3, 2), (1, 2), (8, 3), (2, 16)])
def test_one_file_is_read_by_as_many_tasks_as_are_asked_for(
    spark: SparkSession, tmp_path: Path, groups: int, tasks: int
) -> None:
    rows = pa.table({"id": range(groups * 1_000)})
    pq.write_table(rows, tmp_path / "one.parquet", row_group_size=1_000, compression="none")

    files = found(spark, tmp_path)

    assert files is not None
    copied = files.rows([0], tasks)
    assert len(copied.files) == min(groups, tasks)
    counts = []
    for number in range(len(copied.files)):
        task = copied.function([pa.RecordBatch.from_pydict({"id": [number]})])
        counts.append(sum(batch.num_rows for batch in task))
    assert sum(counts) == groups * 1_000
    assert max(counts) - min(counts) <= 1_000
    assert sorted(rows_of(files, [0])["id"].to_pylist()) == rows["id"].to_pylist()


def test_some_columns_in_another_order(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(sales((1, "x", "a")), tmp_path / "one.parquet")

    files = found(spark, tmp_path)

    assert files is not None
    assert rows_of(files, [2, 0]).to_pylist() == [{"p": "a", "id": 1}]
    assert rows_of(files, []).num_rows == 1


@pytest.mark.parametrize(
    ("table", "written"),
    [
        (pa.table({"id": [1, 2], "list": [[1], [2]]}), {}),
        (MOMENT, {"use_deprecated_int96_timestamps": True}),
        (pa.table({"at": pa.array([0], pa.timestamp("ms"))}), {}),
        (pa.table({"n": pa.array([1], pa.uint32())}), {}),
    ],
    ids=["nested", "int96", "milliseconds", "unsigned"],
)
def test_what_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, table: pa.Table, written: dict[str, Any]
) -> None:
    pq.write_table(table, tmp_path / "one.parquet", **written)

    assert found(spark, tmp_path) is None


@pytest.mark.parametrize(
    ("properties", "copied"),
    [
        ({"org.apache.spark.version": "2.4.8"}, False),
        ({"org.apache.spark.version": "3.5.1", "org.apache.spark.legacyDateTime": ""}, False),
        ({"org.apache.spark.version": "3.5.1"}, True),
    ],
)
def test_dates_of_the_old_calendar_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], copied: bool
) -> None:
    dated = pa.table({"day": [date(1200, 1, 1)]}).replace_schema_metadata(properties)
    pq.write_table(dated, tmp_path / "one.parquet")

    assert (found(spark, tmp_path) is not None) == copied


@pytest.mark.parametrize(
    "other",
    [
        pa.table({"id": pa.array([3], pa.int32())}),
        pa.table({"other": pa.array([3], pa.int64())}),
        pa.table({"id": pa.array([3], pa.int64()), "ID": pa.array([4], pa.int64())}),
    ],
    ids=["type", "column", "case"],
)
def test_files_that_differ_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, other: pa.Table
) -> None:
    # Of files as large as these Spark takes the schema of the first one.
    pq.write_table(IDS, tmp_path / "a.parquet")
    pq.write_table(other, tmp_path / "b.parquet")

    given = FileSource("s", str(tmp_path), "parquet")
    frame = spark.read.schema("id BIGINT").parquet(str(tmp_path))
    assert copied_files(spark, given, frame, None) is None


def test_options_partition_folders_and_damage_are_left_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("whole", "parted/day=1", "damaged"):
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(IDS, tmp_path / name / "a.parquet")
    (tmp_path / "damaged" / "b.parquet").write_bytes(b"PAR1 no more PAR1")

    assert found(spark, tmp_path / "whole") is not None
    assert found(spark, tmp_path / "whole", options={"mergeSchema": "true"}) is None
    assert found(spark, tmp_path / "parted") is None
    given = FileSource("s", str(tmp_path / "damaged"), "parquet")
    frame = spark.read.schema("id BIGINT").parquet(given.path)
    assert copied_files(spark, given, frame, None) is None


@pytest.mark.slow
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "one partition"])
def test_an_overwrite_stores_the_rows_of_files(
    make_table: MakeTable, landing: Path, partitioned: bool
) -> None:
    harness = make_table("append-cow", SALES, partitioned=partitioned)
    pq.write_table(sales((3, "new", "a"), (4, "new", "c")), landing / "one.parquet")
    pq.write_table(sales((5, "new", "c")), landing / "two.parquet")

    result = overwrite(harness, landing, "dynamic" if partitioned else "table")

    assert result.error is None, result.error
    assert (result.metrics.source_rows, result.metrics.inserted) == (3, 3)
    kept = [{"id": 2, "note": "old", "p": "b"}] if partitioned else []
    new = [*sales((3, "new", "a"), (4, "new", "c"), (5, "new", "c")).to_pylist()]
    assert sorted(harness.state().rows, key=lambda row: row["id"]) == [*kept, *new]


@pytest.mark.slow
def test_one_file_is_stored_by_the_tasks_that_read_it(make_table: MakeTable, landing: Path) -> None:
    harness = make_table("append-cow", SALES, partitioned=False)
    rows = sales(*((n, f"note {n}", "a") for n in range(2_000)))
    pq.write_table(rows, landing / "one.parquet", row_group_size=500)

    with counted(harness.spark) as cost:
        result = overwrite(harness, landing / "one.parquet", "table")

    assert result.error is None, result.error
    assert cost.jobs == 2, "one counts the rows by task and partition, one stores them"
    assert sorted(row["id"] for row in harness.read()) == list(range(2_000))


@pytest.mark.slow
def test_files_that_are_written_again_meanwhile_change_nothing(
    make_table: MakeTable, landing: Path
) -> None:
    """Else a partition that only the older files had would be replaced by nothing."""
    harness = make_table("append-cow", SALES, partitioned=True)
    pq.write_table(sales((3, "new", "a")), landing / "one.parquet")
    pq.write_table(sales((4, "new", "b")), landing / "two.parquet")
    before = harness.state()
    connector = harness.open()

    class WritesSourceAgain:
        def __getattr__(self, name: str) -> Any:
            return getattr(connector.writes, name)

        def begin_merge(self, *arguments: Any) -> Any:
            pq.write_table(sales((5, "newer", "a")), landing / "two.parquet")
            return connector.writes.begin_merge(*arguments)

    late = replace(connector, writes=WritesSourceAgain())
    result = overwrite(harness, landing, "dynamic", late)

    assert result.error.code == ErrorCode.SOURCE_UNREADABLE.name
    assert "was written again" in result.error.message
    assert "new name" in result.error.remedy
    assert replace(harness.state(), operations=before.operations) == before
