"""Reading through Spark: exact rows, stable row ids, only the columns that were asked for."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from spark_jobs.connectors.paimon.read.scan import PaimonScan, Reader
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.errors import ErrorCode, NotSupportedError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.evidence import DynamicFilter
from spark_jobs.spi.tables import PlannedFile, TableHandle
from tests.support.paimon_tables import NAME, append, create, read

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PREFIXES = [
    "a %b-",
    "%41-",
    "ü,;#?&=+[z]{q}*-",
    "中\u00a0\u0085\u2028\U0001f600-",
    "a\u0301-",
    '"<>|^`-',
    "",
]
SPELLINGS = [
    *("a*b", "ab", "a?b", "[z]", "z", "{q,r}", "q", "x=y %", "100%25", "a+b", "a b", "ü 中 é"),
    *("back\\slash", "a,b", "a;b", "a#b", "a&b", "..", "~", "$x", "`t`", "__DEFAULT_PARTITION__"),
]


@pytest.fixture(params=["spark", "pyarrow"])
def reader(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connector(warehouse: Path, reader: Reader) -> Connector:
    opened = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    return replace(opened, scan=PaimonScan(pafs.LocalFileSystem(), reader))


def scan(
    spark: SparkSession, connector: Connector, columns: list[str], name: Any = NAME
) -> tuple[TableHandle, tuple[PlannedFile, ...], DataFrame]:
    table = connector.metadata.load_table(name)
    files = connector.metadata.plan_files(table)
    return table, files, connector.scan.read(spark, table, files, columns)


def test_rows_of_partitions_of_any_spelling_are_read_once(
    spark: SparkSession, connector: Connector
) -> None:
    create(connector, {"id": "int", "p": "string"}, ["p"])
    append(connector, [{"id": i, "p": p} for i, p in enumerate(SPELLINGS)])
    append(connector, [{"id": 100 + i, "p": p} for i, p in enumerate(SPELLINGS)], "more")

    _, files, frame = scan(spark, connector, ["id", "p"])
    found = [(row.id, row.p) for row in frame.collect()]

    assert len(files) == 2 * len(SPELLINGS)
    assert sorted(found) == sorted(
        (base + i, p) for base in (0, 100) for i, p in enumerate(SPELLINGS)
    )


@pytest.mark.parametrize("prefix", PREFIXES)
def test_rows_of_files_of_any_name_are_read(
    spark: SparkSession, connector: Connector, prefix: str
) -> None:
    create(connector, {"id": "int", "p": "int"}, ["p"], {"data-file.prefix": prefix})
    append(connector, [{"id": i, "p": i % 2} for i in range(4)])

    _, files, frame = scan(spark, connector, ["id"])
    found = sorted((row.id, row["__merge_row_id"].file) for row in frame.collect())

    assert all(Path(file.path).name.startswith(prefix) for file in files)
    ordinals = {file.partition["p"]: file.ordinal for file in files}
    assert found == [(i, ordinals[i % 2]) for i in range(4)]


@pytest.mark.parametrize("reader", ["spark"])
def test_a_file_that_spark_calls_by_another_name_is_an_error(
    spark: SparkSession, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    monkeypatch.setattr("spark_jobs.spark_reads.parquet_rows._names_in_spark", lambda *_: ["other"])

    _, files, frame = scan(spark, connector, ["id"])
    with pytest.raises(Exception, match="job-error") as raised:
        frame.collect()

    error = translated(raised.value)
    assert error.code is ErrorCode.INTERNAL_ERROR
    assert Path(files[0].path).name in error.message


def test_row_ids_say_where_the_row_is(spark: SparkSession, connector: Connector) -> None:
    create(connector, {"id": "int", "p": "int"}, ["p"])
    append(connector, [{"id": i, "p": i % 3} for i in range(30)])

    table, _, frame = scan(spark, connector, ["id"])
    sink = _sink(connector, table)

    assert frame.columns == ["id", "__merge_row_id"]
    assert (
        frame.schema["__merge_row_id"].dataType.simpleString() == "struct<file:int,position:bigint>"
    )
    for row in frame.collect():
        row_id = row["__merge_row_id"].asDict()
        assert sink.read_row(row_id, ["id"]) == {"id": row.id}


def _sink(connector: Connector, table: TableHandle) -> Any:
    from tests.support.paimon_tables import begin

    return begin(connector, table).sinks.open("task")


def test_ordinals_survive_pruning(spark: SparkSession, connector: Connector) -> None:
    create(connector, {"id": "int", "p": "int"}, ["p"])
    append(connector, [{"id": i, "p": i} for i in range(5)])
    table = connector.metadata.load_table(NAME)
    files = connector.metadata.plan_files(table)

    frame = connector.scan.read(spark, table, [files[3], files[1]], ["p"])

    assert {(row.p, row["__merge_row_id"].file) for row in frame.collect()} == {(3, 3), (1, 1)}


@pytest.mark.parametrize("reader", ["spark"])
def test_only_the_asked_columns_are_read(spark: SparkSession, connector: Connector) -> None:
    create(connector, {"id": "int", "a": "string", "b": "array<int>", "p": "int"}, ["p"])
    append(connector, [{"id": 1, "p": 1}])

    _, _, frame = scan(spark, connector, ["a", "id"])
    plan = frame._jdf.queryExecution().executedPlan().toString()

    (schema,) = re.findall(r"ReadSchema: struct<([^>]*)>", plan)
    assert schema == "id:int,a:string,_tmp_metadata_row_index:bigint"
    assert frame.columns == ["a", "id", "__merge_row_id"]


def test_no_file_and_no_column_are_possible(spark: SparkSession, connector: Connector) -> None:
    create(connector, {"id": "int", "name": "varchar(3)"})
    _, _, frame = scan(spark, connector, ["name", "id"])

    assert frame.columns == ["name", "id", "__merge_row_id"]
    assert frame.collect() == []
    append(connector, [{"id": 1}])
    _, _, frame = scan(spark, connector, [])
    assert [tuple(row["__merge_row_id"]) for row in frame.collect()] == [(0, 0)]


def test_all_types_come_as_they_are(spark: SparkSession, connector: Connector) -> None:
    columns = {
        "ti": "tinyint",
        "si": "smallint",
        "bi": "bigint",
        "fl": "float",
        "bo": "boolean",
        "de": "decimal(9,2)",
        "big": "decimal(38,3)",
        "ch": "char(3)",
        "vc": "varchar(9)",
        "by": "binary",
        "da": "date",
        "at": "timestamp",
        "local": "timestamp_ntz",
        "li": "array<array<int>>",
        "ma": "map<string,decimal(3,1)>",
        "st": "struct<a:int,`b c`:varchar(4)>",
    }
    create(connector, columns)
    at = dt.datetime(1500, 3, 1, 12, 30, 1, 123456, tzinfo=dt.UTC)
    values: dict[str, Any] = {"ti": -1, "si": 2, "bi": 2**60, "fl": 0.5, "bo": True}
    values |= {"de": Decimal("-1.25"), "big": Decimal("12345678901234567890.125")}
    values |= {"ch": "abc", "vc": "ü", "by": b"\x00", "da": dt.date(1500, 2, 28), "at": at}
    values |= {"local": at.replace(tzinfo=None), "li": [[1, None], None]}
    values |= {"ma": [("k", Decimal("1.5"))], "st": {"a": 1, "b c": "x"}}
    append(connector, [values, {}])

    _, _, frame = scan(spark, connector, list(columns))
    full, empty = pa.Table.from_batches(
        frame.drop("__merge_row_id")._collect_as_arrow()
    ).to_pylist()

    assert full == values
    assert set(empty.values()) == {None}
    assert dict(frame.dtypes)["local"] == "timestamp_ntz"
    assert dict(frame.dtypes)["at"] == "timestamp"
    assert len(read(connector)) == 2


def test_columns_with_awkward_names_are_read(spark: SparkSession, connector: Connector) -> None:
    create(connector, {"a.b": "int", "_metadata": "string", "x y`z": "int"})
    append(connector, [{"a.b": 1, "_metadata": "m", "x y`z": 2}])

    _, _, frame = scan(spark, connector, ["_metadata", "x y`z", "a.b"])

    assert [tuple(row)[:3] for row in frame.collect()] == [("m", 2, 1)]


@pytest.mark.parametrize("damage", ["corrupt", "missing"])
def test_damaged_files_are_an_error_even_if_the_session_ignores_them(
    spark: SparkSession, connector: Connector, damage: str
) -> None:
    create(connector, {"id": "int", "p": "int"}, ["p"])
    append(connector, [{"id": 1, "p": 1}, {"id": 2, "p": 2}])
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        _, files, frame = scan(spark, connector, ["id"])
        if damage == "corrupt":
            Path(files[0].path).write_bytes(b"PAR1 broken PAR1")
        else:
            Path(files[0].path).unlink()
        with pytest.raises(
            Exception, match=r"FAILED_READ_FILE|corrupted file|does not exist|is missing or damaged"
        ):
            frame.collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


@pytest.mark.parametrize("reader", ["auto"])
@pytest.mark.parametrize(
    ("column", "kind", "values", "found"),
    [
        ("id", pa.int32(), [3, 7, 99], [3, 7]),
        ("name", pa.string(), ["n2", "n8"], [2, 8]),
        ("id", pa.int32(), [], []),
    ],
)
def test_a_dynamic_filter_leaves_out_what_is_of_no_use(
    spark: SparkSession,
    connector: Connector,
    column: str,
    kind: pa.DataType,
    values: list[Any],
    found: list[int],
) -> None:
    create(connector, {"id": "int", "name": "string", "p": "int"}, ["p"])
    append(connector, [{"id": i, "name": f"n{i}", "p": i % 2} for i in range(10)])
    table = connector.metadata.load_table(NAME)
    files = connector.metadata.plan_files(table)

    keys = DynamicFilter({column: pa.array(values, kind)})
    frame = connector.scan.read(spark, table, files, ["id", "p"], keys)

    assert sorted((row.id, row.p) for row in frame.collect()) == [(i, i % 2) for i in found]


def test_nanoseconds_may_be_left_out_but_not_read(
    spark: SparkSession, connector: Connector
) -> None:
    import pyarrow as pa
    from pypaimon import Schema

    schema = pa.schema([("id", pa.int32()), ("at", pa.timestamp("ns"))])
    create(connector, {"id": "int"})
    catalog = connector.metadata._catalog  # type: ignore[attr-defined]
    catalog.create_table("shop.fine", Schema.from_pyarrow_schema(schema), False)
    from spark_jobs.contract.request import TableName

    table = connector.metadata.load_table(TableName("shop", "fine"))

    assert PaimonScan(pafs.LocalFileSystem()).read(spark, table, [], ["id"]).columns == [
        "id",
        "__merge_row_id",
    ]
    with pytest.raises(NotSupportedError, match="Column at has timestamps of precision 7 to 9"):
        PaimonScan(pafs.LocalFileSystem()).read(spark, table, [], ["at"])


def test_many_files_are_read_without_a_job_that_lists_them(
    spark: SparkSession, connector: Connector
) -> None:
    threshold = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    create(connector, {"id": "int", "p": "int"}, ["p"])
    append(connector, [{"id": i, "p": i} for i in range(40)])
    before = spark.conf.get(threshold)
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("listing", "listing")

    scan(spark, connector, ["id"])

    assert list(tracker.getJobIdsForGroup("listing")) == []
    assert spark.conf.get(threshold) == before
