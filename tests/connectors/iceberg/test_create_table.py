"""CREATE TABLE with transforms, identifier fields and versions, as pyiceberg reads the table."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError
from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

SPEC = CreateTableSpec(
    columns=(
        ColumnSpec("n", "STRUCT<x: INT>"),
        ColumnSpec("Id", "BIGINT", nullable=False),
        ColumnSpec("ts", "TIMESTAMP"),
        ColumnSpec("s", "STRING", nullable=False),
        ColumnSpec("day", "DATE"),
        ColumnSpec("f", "DOUBLE", nullable=False),
        ColumnSpec("my col", "DECIMAL(9, 2)"),
    ),
    partition_keys=("days(ts)", "bucket(4, id)", "truncate(1,s)", "DAY", "bucket(3, `my col`)"),
    primary_key=("s", "id"),
)
FIELDS = [
    ("ts", "day", "ts_day"),
    ("Id", "bucket[4]", "Id_bucket"),
    ("s", "truncate[1]", "s_trunc"),
    ("day", "identity", "day"),
    ("my col", "bucket[3]", "my col_bucket"),
]


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    made = PlainCatalog(tmp_path)
    made.library()
    return made


def fields_of(catalog: PlainCatalog) -> list[tuple[str, str, str]]:
    """The source column, transform and name of each partition field, as pyiceberg reads them."""
    return _fields(catalog.library().load_table(("db", "t")))


def _fields(table: Table) -> list[tuple[str, str, str]]:
    return [
        (table.schema().find_column_name(each.source_id), str(each.transform), each.name)
        for each in table.spec().fields
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_what_pyiceberg_reads(catalog: PlainCatalog, version: int) -> None:
    spec = replace(SPEC, table_options={"format-version": str(version)})

    assert catalog.open().metadata.create_table(NAME, spec) is True

    table = catalog.library().load_table(("db", "t"))
    assert table.format_version == version
    assert fields_of(catalog) == FIELDS
    assert [each.field_id for each in table.spec().fields] == [1000, 1001, 1002, 1003, 1004]
    assert table.schema().identifier_field_names() == {"Id", "s"}
    assert catalog.open().metadata.create_table(NAME, spec) is False


def test_all_units_of_time_by_both_names(catalog: PlainCatalog) -> None:
    units = ("year", "months", "day", "hours", "years", "month", "days", "hour")
    columns = tuple(ColumnSpec(f"c{i}", "TIMESTAMP_NTZ") for i in range(8))
    spec = CreateTableSpec(columns, tuple(f"{unit}(c{i})" for i, unit in enumerate(units)))

    catalog.open().metadata.create_table(NAME, spec)

    plain = [unit.removesuffix("s") for unit in units]
    assert fields_of(catalog) == [(f"c{i}", unit, f"c{i}_{unit}") for i, unit in enumerate(plain)]


@pytest.mark.parametrize("version", ["1", "2"])
def test_inserted_rows_are_in_their_partitions(catalog: PlainCatalog, version: str) -> None:
    spec = replace(SPEC, table_options={"format-version": version}, primary_key=("id",))
    columns = (*SPEC.columns[2:], ColumnSpec("id", "BIGINT", nullable=False))
    connector = catalog.open()
    connector.metadata.create_table(NAME, replace(spec, columns=columns))
    day = dt.date(2026, 2, 1)
    rows = [
        {"id": number, "ts": ts, "s": s, "day": day, "f": 1.0, "my col": Decimal("14.20")}
        for number, (ts, s) in enumerate(
            [
                (dt.datetime(1969, 12, 31, 23, 59, tzinfo=dt.UTC), "äx"),
                (dt.datetime(2026, 1, 31, 7, tzinfo=dt.UTC), "bx"),
                (dt.datetime(2026, 1, 31, 9, tzinfo=dt.UTC), "by"),
            ],
            start=34,
        )
    ]

    DirectWrite(connector).insert(*rows).publish()

    assert ids_of(catalog) == [34, 35, 36]
    files = catalog.library().load_table(("db", "t")).inspect.files().to_pylist()
    found = sorted(tuple(each["partition"].values()) for each in files)
    # Hashes of the specification: 2017239379 for 34; that of 14.20 is -500754589.
    fourth = (-500754589 & 0x7FFFFFFF) % 3
    assert found[0] == (dt.date(1969, 12, 31), 2017239379 % 4, "ä", day, fourth)
    assert {each[0] for each in found[1:]} == {dt.date(2026, 1, 31)}
    assert {each[2] for each in found[1:]} == {"b"}


@pytest.mark.slow
def test_fields_have_the_names_that_java_gives_them(iceberg_spark: IcebergSpark) -> None:
    units = ("years(c0)", "months(c1)", "days(c2)", "hours(c3)")
    others = ("bucket(4, Id)", "truncate(1, s)", "day", "bucket(3, `my col`)")
    iceberg_spark.sql(
        f"CREATE TABLE {CATALOG}.db.named (Id BIGINT, s STRING, day DATE, `my col` DECIMAL(9, 2), "
        "c0 TIMESTAMP, c1 TIMESTAMP, c2 TIMESTAMP, c3 TIMESTAMP) "
        f"USING iceberg PARTITIONED BY ({', '.join((*units, *others))})"
    )

    fields = _fields(iceberg_spark.library().load_table(("db", "named")))

    plain = [
        (f"c{i}", each, f"c{i}_{each}") for i, each in enumerate(("year", "month", "day", "hour"))
    ]
    assert fields == [*plain, *FIELDS[1:]]


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    **{
        key: ({"partition_keys": (key,)}, "NOT_SUPPORTED", f"partition_keys: {key}: column ")
        for key in ("day(s)", "bucket(2, f)", "truncate(2, ts)", "hour(day)", "bucket(2, n)")
    },
    "identity of STRUCT": ({"partition_keys": ("n",)}, "NOT_SUPPORTED", "partition_keys: n: "),
    "name of a column": (
        {"columns": (*SPEC.columns, ColumnSpec("TS_day", "INT"))},
        "REQUEST_INVALID",
        "partition_keys: day(ts): its field would be called ts_day, as column TS_day is",
    ),
    "optional": ({"primary_key": ("id", "ts")}, "REQUEST_INVALID", "primary_key: column ts admits"),
    "floating": ({"primary_key": ("f",)}, "REQUEST_INVALID", "primary_key: column f is DOUBLE"),
    "nested": (
        {"columns": (ColumnSpec("n", "ARRAY<INT>", nullable=False), *SPEC.columns[1:])}
        | {"primary_key": ("n",)},
        "REQUEST_INVALID",
        "primary_key: column n is ARRAY<INT>",
    ),
}


@pytest.mark.parametrize(("changed", "code", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_a_type_does_not_have(
    catalog: PlainCatalog, changed: dict[str, Any], code: str, problem: str
) -> None:
    with pytest.raises(JobError) as caught:
        catalog.open().metadata.create_table(TableName("other", "t"), replace(SPEC, **changed))

    assert caught.value.code.name == code
    assert caught.value.message.startswith(problem)
    assert caught.value.remedy
    assert catalog.library().list_namespaces() == []


def test_the_remedy_names_the_types(catalog: PlainCatalog) -> None:
    with pytest.raises(JobError) as caught:
        catalog.open().metadata.create_table(NAME, replace(SPEC, partition_keys=("day(s)",)))

    assert caught.value.message == "partition_keys: day(s): column s is STRING."
    assert caught.value.remedy == "A column for day can be TIMESTAMP, DATE, TIMESTAMP_NTZ."


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        (
            {"partition_keys": ("day(ts)", "bucket(8, id)", *SPEC.partition_keys[2:])},
            "truncate(1, s), day, bucket(3, my col)), not (day(ts), bucket(8, Id), truncate(1, s)",
        ),
        ({"partition_keys": ()}, "bucket(3, my col)), not ()"),
        ({"primary_key": ("id",)}, "identifier fields: (Id, s), not (id)"),
        ({"primary_key": ()}, "identifier fields: (Id, s), not ()"),
        ({"table_options": {"format-version": "1"}}, "option format-version is '2', not '1'"),
    ],
)
def test_a_table_that_differs(
    catalog: PlainCatalog, changed: dict[str, Any], difference: str
) -> None:
    metadata = catalog.open().metadata
    metadata.create_table(NAME, SPEC)

    with pytest.raises(JobError) as caught:
        metadata.create_table(NAME, replace(SPEC, **changed))

    assert caught.value.code is ErrorCode.TABLE_DIFFERS
    assert difference in caught.value.message
    assert caught.value.message.count(";") == 0


def test_spelling_and_names_of_fields_are_no_difference(catalog: PlainCatalog) -> None:
    metadata = catalog.open().metadata
    metadata.create_table(NAME, replace(SPEC, partition_keys=()))
    with catalog.library().load_table(("db", "t")).update_spec() as update:
        for column, transform, name in FIELDS:
            update.add_field(column, transform, f"own_{name}")
    keys = ("day( TS )", "BUCKET(4, Id)", "truncate(1, S)", "day", "bucket(3, my col)")

    same = replace(SPEC, partition_keys=keys, primary_key=("ID", "s"))

    assert metadata.create_table(NAME, same) is False


def test_a_new_catalog_is_begun_where_the_options_ask_for_it(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    with pytest.raises(JobError, match="has no table iceberg_tables") as found:
        catalog.open().metadata.load_table(NAME)
    assert found.value.code is ErrorCode.WAREHOUSE_NOT_FOUND
    assert not (tmp_path / "catalog.db").exists()

    new = catalog.open(init_catalog_tables="true")
    new.metadata.create_table(NAME, SPEC)

    assert new.metadata.load_table(NAME).name == NAME
    assert catalog.library().table_exists(("db", "t"))


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("write.metadata.path", "warehouse/t", "is not a whole path"),
        ("commit.manifest.target-size-bytes", "8 MB", "is not a whole number"),
        ("write.format.default", "csv", "write.format.default = csv is not supported"),
    ],
)
def test_options_with_which_no_statement_would_work(
    catalog: PlainCatalog, option: str, value: str, problem: str
) -> None:
    with pytest.raises(NotSupportedError, match=problem):
        catalog.open().metadata.create_table(NAME, replace(SPEC, table_options={option: value}))
    assert not catalog.library().namespace_exists("db")
