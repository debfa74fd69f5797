"""Loading tables: what they are, and what is refused by name."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import RowChangeParadigm
from spark_jobs.spi.writes import WriteLayout
from tests.support.paimon_tables import NAME, append, create

Schema = dict[str, Any]


def edit_schema(warehouse: Path, change: Callable[[Schema], None]) -> None:
    """Change the schema file as another engine might have written it."""
    path = warehouse / "shop.db/orders/schema/schema-0"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def set_option(option: str, value: str) -> Callable[[Schema], None]:
    return lambda document: document["options"].update({option: value})


def set_type(kind: Any) -> Callable[[Schema], None]:
    return lambda document: document["fields"][1].update({"type": kind})


def test_a_missing_table_is_named_with_the_warehouse(connector: Connector, warehouse: Path) -> None:
    create(connector, {"id": "int"})

    for name in (TableName("shop", "missing"), TableName("missing", "orders")):
        with pytest.raises(JobError, match=f"Table {name} does not exist") as raised:
            connector.metadata.load_table(name)
        assert raised.value.code is ErrorCode.TABLE_NOT_FOUND
        assert str(warehouse) in raised.value.message


def test_case_of_a_name_matters_only_where_tables_differ_in_nothing_else(
    connector: Connector, warehouse: Path
) -> None:
    create(connector, {"id": "int"}, name=TableName("shop", "Orders"))
    assert connector.metadata.load_table(TableName("shop", "ORDERS")).column_names == ("id",)

    shutil.copytree(warehouse / "shop.db/Orders", warehouse / "shop.db/orders")
    assert connector.metadata.load_table(TableName("shop", "Orders")).column_names == ("id",)
    with pytest.raises(JobError, match="ORDERS does not exist") as raised:
        connector.metadata.load_table(TableName("shop", "ORDERS"))
    assert raised.value.code is ErrorCode.TABLE_NOT_FOUND


def test_a_table_is_pinned_at_its_latest_snapshot(connector: Connector) -> None:
    empty = create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    append(connector, [{"id": 2}], operation_id="other")

    assert empty.snapshot_id is None
    assert connector.metadata.load_table(NAME).snapshot_id == 2
    assert connector.metadata.plan_files(empty) == ()


def test_a_stale_hint_does_not_hide_the_latest_snapshot(
    connector: Connector, warehouse: Path
) -> None:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    append(connector, [{"id": 2}], operation_id="other")
    (warehouse / "shop.db/orders/snapshot/LATEST").write_text("1")

    assert connector.metadata.load_table(NAME).snapshot_id == 2


def test_a_changed_schema_is_seen_at_once(connector: Connector) -> None:
    from pypaimon.schema.data_types import AtomicType
    from pypaimon.schema.schema_change import SchemaChange

    table = create(connector, {"id": "int"})
    catalog = table.native.table.catalog_environment.catalog_loader.load()
    catalog.alter_table(str(NAME), [SchemaChange.add_column("n", AtomicType("INT"))])

    assert connector.metadata.load_table(NAME).column_names == ("id", "n")


def test_defaults_are_expressions_of_the_columns_type(
    connector: Connector, warehouse: Path
) -> None:
    create(connector, {"id": "int", "name": "string", "n": "decimal(5,2)"})

    def change(document: Schema) -> None:
        document["fields"][1]["defaultValue"] = "it's"
        document["fields"][2]["defaultValue"] = "1.5"

    edit_schema(warehouse, change)

    defaults = [column.default for column in connector.metadata.load_table(NAME).columns]
    as_bytes = b"it's".hex()
    quoted = f"CAST(CAST(X'{as_bytes}' AS STRING) AS string)"
    assert defaults == [None, quoted, "CAST('1.5' AS decimal(5,2))"]


def test_layouts_and_paradigm_of_an_append_table(connector: Connector) -> None:
    table = create(connector, {"id": "int", "day": "date"}, ["day"])
    metadata = connector.metadata

    assert metadata.row_change_paradigm(table) is RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS
    assert metadata.insert_layout(table) == WriteLayout(("day",), ("day",), joins_files=True)
    assert metadata.update_layout(table) == WriteLayout(
        ("__merge_row_id.file",),
        ("__merge_row_id.file", "__merge_row_id.position"),
        file_ordinal="__merge_row_id.file",
    )


@pytest.mark.parametrize("name", ["orders$snapshots", "orders$branch_b$files", "orders$branch_"])
def test_system_tables_are_refused(connector: Connector, name: str) -> None:
    create(connector, {"id": "int"})

    with pytest.raises(NotSupportedError, match=r"is a system table"):
        connector.metadata.load_table(TableName("shop", name))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda d: d.update({"primaryKeys": ["id"], "options": {"bucket": "0"}}),
            r"has a primary key \(id\) and a number of buckets that there is not",
        ),
        (
            set_option("file.format", "csv"),
            r"neither parquet nor ORC nor Avro \(option file.format = csv\)",
        ),
        (set_option("deletion-vectors.bitmap64", "true"), "64-bit deletion vectors"),
        (
            lambda d: d["options"].update({"row-tracking.enabled": "true", "bucket": "2"}),
            r"tracks rows .* and has fixed buckets",
        ),
        (set_option("data-evolution.enabled", "true"), "does not track rows"),
        (set_option("scan.fallback-branch", "b"), "falls back to a branch"),
        (set_option("type", "format-table"), "not a data table"),
        (set_option("fields.name.default-value", "x"), "replaces NULLs while reading"),
        (set_type("TIME(3)"), "Column name is of Paimon's type TIME"),
        (set_type("VARIANT"), "Column name is of Paimon's type VARIANT"),
        (lambda d: d["fields"][1].update({"name": "ID"}), "differ only in case"),
        (lambda d: d["fields"][1].update({"name": "__merge_x"}), "reserved"),
    ],
)
def test_tables_that_can_not_be_read_right_are_refused(
    connector: Connector, warehouse: Path, change: Callable[[Schema], None], reason: str
) -> None:
    create(connector, {"id": "int", "name": "string"})
    edit_schema(warehouse, change)

    with pytest.raises(NotSupportedError, match=reason) as raised:
        connector.metadata.load_table(NAME)

    assert raised.value.remedy


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("BYTES", "no portable spelling"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "time zone"),
    ],
)
def test_partition_types_without_a_portable_directory_are_refused(
    connector: Connector, warehouse: Path, kind: str, reason: str
) -> None:
    create(connector, {"id": "int", "name": "string"}, ["name"])
    edit_schema(warehouse, set_type(kind))

    with pytest.raises(NotSupportedError, match=f"partitioned by name.*{reason}"):
        connector.metadata.load_table(NAME)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (set_option("bucket", "4"), "4 buckets but no bucket key"),
        (set_option("bucket", "-2"), "bucket = -2"),
        (set_option("bucket", "0"), "bucket = 0"),
        (set_option("data-file.prefix", "_d-"), "data-file.prefix = _d- of shop.orders"),
        (set_option("data-file.prefix", "a/b-"), "data-file.prefix = a/b- of shop.orders"),
        (set_option("data-file.prefix", "a:b-"), "data-file.prefix = a:b- of shop.orders"),
        *(
            (
                set_option("data-file.path-directory", path),
                re.escape(f"path-directory = {path} of shop"),
            )
            for path in ("../other", "a/../../other", "/other", "a//b", "a/./b", "s3://b/a", r"a\b")
        ),
        (set_type("TIMESTAMP(9)"), "precision 7 to 9"),
        (set_type({"type": "ARRAY", "element": "TIMESTAMP(7)"}), "precision 7 to 9"),
    ],
)
def test_tables_that_can_only_be_read_are_refused_as_targets(
    connector: Connector, warehouse: Path, change: Callable[[Schema], None], reason: str
) -> None:
    create(connector, {"id": "int", "name": "string"})
    edit_schema(warehouse, change)
    table = connector.metadata.load_table(NAME)

    with pytest.raises(NotSupportedError, match=reason):
        connector.metadata.require_writable(table)


@pytest.mark.parametrize("damage", ["schema/schema-0", "snapshot/snapshot-1"])
def test_damaged_metadata_names_the_table(
    connector: Connector, warehouse: Path, damage: str
) -> None:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    (warehouse / "shop.db/orders" / damage).write_text("{")

    with pytest.raises(JobError, match=r"The metadata of shop\.orders") as raised:
        connector.metadata.load_table(NAME)

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE


def test_a_lost_manifest_is_noticed_when_files_are_planned(
    connector: Connector, warehouse: Path
) -> None:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    for path in (warehouse / "shop.db/orders/manifest").glob("manifest-list-*"):
        path.unlink()

    with pytest.raises(JobError) as raised:
        connector.metadata.plan_files(connector.metadata.load_table(NAME))

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE
