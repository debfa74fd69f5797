"""ALTER TABLE on tables of each version: upgrades, former partition fields, name mappings."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, ListType, LongType, NestedField, StringType, StructType

from spark_jobs.contract.alter_table import (
    AddColumn,
    AddPartitionField,
    DropColumn,
    DropPartitionField,
    RenameColumn,
    ReplacePartitionField,
    SetDefault,
    SetProperties,
    UnsetProperties,
)
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.altering import alter, failure, made, table
from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    return made(tmp_path)


def test_the_name_mapping_follows(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(
            2,
            "a",
            ListType(3, StructType(NestedField(4, "x", StringType(), required=False)), False),
            required=False,
        ),
    )
    mapping = [
        {"field-id": 1, "names": ["id"]},
        {
            "field-id": 2,
            "names": ["a"],
            "fields": [
                {
                    "field-id": 3,
                    "names": ["element"],
                    "fields": [{"field-id": 4, "names": ["x"]}],
                }
            ],
        },
    ]
    catalog.create(schema, {"schema.name-mapping.default": json.dumps(mapping)}, None)

    alter(
        catalog.open(),
        RenameColumn("id", "number"),
        AddColumn("id", "STRUCT<q: INT>"),
        AddColumn("a.element.y", "INT"),
        RenameColumn("a.element.x", "z"),
    )

    found = json.loads(table(catalog).properties["schema.name-mapping.default"])
    assert found == [
        {"field-id": 1, "names": ["number"]},
        {
            "field-id": 2,
            "names": ["a"],
            "fields": [
                {
                    "field-id": 3,
                    "names": ["element"],
                    "fields": [
                        {"field-id": 4, "names": ["x", "z"]},
                        {"field-id": 7, "names": ["y"]},
                    ],
                }
            ],
        },
        {
            "field-id": 5,
            "names": ["id"],
            "fields": [{"field-id": 6, "names": ["q"]}],
        },
    ]


def test_rows_are_added_after_a_field_of_a_column_without_null_is_dropped(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    catalog.library()
    connector = catalog.open()
    spec = CreateTableSpec(
        (ColumnSpec("id", "BIGINT", nullable=False), ColumnSpec("p", "INT", nullable=False)),
        ("truncate(3, id)", "p"),
        table_options={"format-version": "1"},
    )
    connector.metadata.create_table(NAME, spec)
    DirectWrite(connector).insert({"id": 1, "p": 5}).publish()

    alter(connector, DropPartitionField("truncate(3, id)"))
    DirectWrite(catalog.open()).insert({"id": 2, "p": 6}).publish()

    assert ids_of(catalog) == [1, 2]
    rows = table(catalog).scan().to_arrow().to_pylist()
    assert sorted(each["id"] for each in rows) == [1, 2]


def test_fields_of_version_1_stay_as_fields_of_nothing(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    catalog.library()
    connector = catalog.open()
    connector.metadata.create_table(
        NAME,
        CreateTableSpec(
            (ColumnSpec("id", "INT"), ColumnSpec("p", "INT")),
            ("p", "bucket(2, id)"),
            table_options={"format-version": "1"},
        ),
    )

    alter(connector, DropPartitionField("p"), AddPartitionField("truncate(4, p)", "p_new"))
    DirectWrite(connector).insert({"id": 1, "p": 5}).publish()
    assert (
        "of a column that is dropped" in failure(lambda: alter(connector, DropColumn("p"))).message
    )
    alter(connector, AddPartitionField("p"))

    assert [(each.name, str(each.transform)) for each in table(catalog).spec().fields] == [
        ("p_1000", "void"),
        ("id_bucket", "bucket[2]"),
        ("p_new", "truncate[4]"),
        ("p", "identity"),
    ]
    DirectWrite(catalog.open()).insert({"id": 2, "p": 6}).publish()
    assert ids_of(catalog) == [1, 2]
    assert alter(catalog.open(), SetProperties({"format-version": "2"})) == [
        ("format-version", "1", "2")
    ]
    assert ids_of(catalog) == [1, 2]


def test_a_field_that_comes_back_is_the_same(catalog: PlainCatalog, connector: Connector) -> None:
    first = table(catalog).spec()
    alter(connector, DropPartitionField("day(ts)"), AddPartitionField("s"))
    alter(connector, DropPartitionField("s"), AddPartitionField("day(ts)"))

    assert table(catalog).spec() == first
    alter(connector, AddPartitionField("s"))
    assert [each.field_id for each in table(catalog).spec().fields] == [1000, 1001]


def test_a_column_of_former_partitions_is_not_dropped(
    catalog: PlainCatalog, connector: Connector
) -> None:
    alter(connector, DropPartitionField("ts_day"))

    found = failure(lambda: alter(connector, DropColumn("ts")))

    assert "files may still be partitioned by ts_day" in found.message
    assert "clean_expired_metadata" in found.remedy


@pytest.mark.parametrize("before", ["1", "2"])
def test_an_upgrade_and_what_comes_with_it(tmp_path: Path, before: str) -> None:
    catalog = PlainCatalog(tmp_path)
    rows = pa.table({"id": pa.array([1], pa.int32())})
    schema = Schema(NestedField(1, "id", IntegerType(), required=False))
    catalog.create(schema, {"format-version": before}, rows)

    report = alter(
        catalog.open(),
        SetProperties({"format-version": "3"}),
        AddColumn("n", "INT", nullable=False, default="5"),
        AddColumn("day", "DATE", default="DATE '2026-01-31'"),
    )

    assert report[0] == ("format-version", before, "3")
    found = table(catalog)
    assert (found.metadata.format_version, found.metadata.next_row_id) == (3, 0)
    document = json.loads(Path(found.metadata_location.removeprefix("file://")).read_text())
    assert not {"schema", "partition-spec"} & document.keys()
    DirectWrite(catalog.open()).insert({"id": 2, "n": 6, "day": None}).publish()
    assert table(catalog).metadata.next_row_id == 2
    alter(catalog.open(), SetDefault("n", "7"), SetDefault("day", None))
    fields = {each.name: each for each in table(catalog).schema().fields}
    assert (fields["n"].initial_default, fields["n"].write_default) == (5, 7)
    assert fields["day"].write_default is None


def test_what_version_3_cannot_have_is_not_upgraded(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    schema = Schema(NestedField(1, "_row_id", LongType(), required=False))
    catalog.create(schema, {"format-version": "2"}, None)

    upgrade = SetProperties({"format-version": "3"})
    found = failure(lambda: alter(catalog.open(), upgrade))

    assert "has a column _row_id" in found.message
    assert table(catalog).metadata.format_version == 2
    alter(catalog.open(), RenameColumn("_row_id", "number"), upgrade)
    assert table(catalog).metadata.format_version == 3


def test_a_table_that_is_no_target_may_be_cured(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    catalog.create(schema, {"write.format.default": "csv"}, None)

    alter(catalog.open(), AddColumn("n", "INT"))
    alter(catalog.open(), UnsetProperties(("write.format.default",)))

    catalog.open().metadata.require_writable(catalog.open().metadata.load_table(NAME))


def test_a_field_that_was_replaced_is_not_replaced_again(
    catalog: PlainCatalog, connector: Connector
) -> None:
    change = ReplacePartitionField("day(ts)", "month(ts)")

    first, again = alter(connector, change), alter(connector, change)
    other = failure(lambda: alter(connector, ReplacePartitionField("day(ts)", "hour(ts)")))

    assert [what for what, *_ in first] == ["partition fields"]
    assert again == []
    assert other.code is ErrorCode.COLUMN_NOT_FOUND
    assert [str(each.transform) for each in table(catalog).spec().fields] == ["month"]
