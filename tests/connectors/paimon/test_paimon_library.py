"""What the connector relies on in pypaimon: a new release that breaks it fails here first."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.paimon.library import (
    catalogs,
    data_files,
    manifest_files,
    new_schemas,
    stored_snapshots,
    table_schema,
)
from spark_jobs.connectors.paimon.library.table_schema import PaimonColumn, PaimonSchema
from spark_jobs.contract.request import TableName
from spark_jobs.datafiles.statistics import ColumnStatistics
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, append, append_with_pypaimon, create, schema_of


def test_the_library_is_of_the_line_that_the_tests_know() -> None:
    from importlib.metadata import version

    assert version("pypaimon").startswith("2.1.")


def test_a_schema_comes_back_as_it_was_made(tmp_path: Path) -> None:
    catalog = catalogs.open_catalog({"warehouse": str(tmp_path)})
    row = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT NOT NULL"}]}
    schema = PaimonSchema(
        columns=(
            PaimonColumn("id", "BIGINT NOT NULL", "key"),
            PaimonColumn("d", "DECIMAL(10, 2) NOT NULL"),
            PaimonColumn("t", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
            PaimonColumn("r", {"type": "ARRAY", "element": row}),
        ),
        partition_keys=("id",),
        primary_keys=(),
        options={"bucket": "-1"},
        comment="c",
    )

    new_schemas.create_table(catalog, NAME, schema)
    found = table_schema.schema_of(catalogs.find_table(catalog, NAME))

    assert found.columns[:3] == schema.columns[:3]
    assert found.columns[3].type["element"]["fields"][0] == {
        "id": 4,
        "name": "x",
        "type": "INT NOT NULL",
    }
    assert (found.partition_keys, found.options, found.comment) == (
        ("id",),
        {"bucket": "-1"},
        "c",
    )


def test_missing_tables_and_databases_are_none(tmp_path: Path) -> None:
    catalog = catalogs.open_catalog({"warehouse": str(tmp_path)})

    assert catalogs.find_table(catalog, NAME) is None


def test_names_are_taken_literally(connector: Connector) -> None:
    name = TableName("my db", "a.b")

    create(connector, {"id": "int"}, name=name)

    assert connector.metadata.load_table(name).name == name


def test_new_files_have_the_parquet_schema_that_java_writes(connector: Connector) -> None:
    # The ids are those that Paimon 1.4 (Java) wrote for this schema.
    table = create(
        connector,
        {
            "id": "bigint",
            "l": "array<array<map<string,struct<z:array<int>>>>>",
            "d": "decimal(9,2)",
        },
    )
    append(connector, [{"id": 1}])
    (file,) = connector.metadata.plan_files(connector.metadata.load_table(NAME))
    parquet = pq.ParquetFile(file.path)

    ids = [
        line.split("field_id=")[1].split(" ")[0]
        for line in str(parquet.schema).split("\n")
        if "field_id" in line
    ]
    base = 2147483647 // 4
    outer, inner = 1, 2
    assert ids[1:] == [
        *("0", "1", "-1", str(base + outer * 1024 + 1), "-1", str(base + outer * 1024 + 2), "-1"),
        *(
            str(base - outer * 1024 - 3),
            str(base + outer * 1024 + 3),
            str(inner),
            "-1",
            str(base + inner * 1024 + 1),
        ),
        "3",
    ]
    assert parquet.metadata.metadata is None
    assert parquet.schema.column(2).physical_type == "INT32"
    assert pa.schema([f.remove_metadata() for f in schema_of(table)]).names == ["id", "l", "d"]


def test_a_snapshot_file_is_what_the_store_is_given(connector: Connector, warehouse: Path) -> None:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    table = connector.metadata.load_table(NAME).native.table
    snapshot = stored_snapshots.find_snapshot(table, 1)

    text = (warehouse / "shop.db/orders/snapshot/snapshot-1").read_text()

    assert json.loads(stored_snapshots.snapshot_json(snapshot)) == json.loads(text)
    assert stored_snapshots.find_snapshot(table, 2) is None


def test_which_snapshots_change_files(connector: Connector) -> None:
    table = create(connector, {"id": "int"})
    append_with_pypaimon(table, [{"id": 1}])
    allowing = table.native.table.copy({"snapshot.ignore-empty-commit": "false"})
    allowing.new_batch_write_builder().new_commit().commit([])
    native = connector.metadata.load_table(NAME).native.table

    first, empty = (
        stored_snapshots.find_snapshot(native, i) for i in stored_snapshots.snapshot_ids(native)
    )

    assert [e.file.row_count for e in manifest_files.changed_entries(native, first)] == [1]
    assert manifest_files.changed_entries(native, empty) == []


def test_a_table_without_snapshots(connector: Connector) -> None:
    table = create(connector, {"id": "int"}).native.table

    assert stored_snapshots.latest_snapshot(table) is None
    assert stored_snapshots.snapshot_ids(table) == []


def test_statistics_of_a_new_file_are_read_back(connector: Connector) -> None:
    table = create(connector, {"id": "int", "l": "array<int>"}).native.table
    statistics = {
        "id": ColumnStatistics(1, 5, 2),
        "l": ColumnStatistics(None, None, 3),
    }

    file = data_files.new_data_file(table, "/x/data-1.parquet", 10, 7, statistics)

    assert (file.file_name, file.file_size, file.row_count, file.schema_id) == (
        "data-1.parquet",
        10,
        7,
        0,
    )
    assert file.value_stats.null_counts == [2, 3]


@pytest.mark.parametrize("column", ["id", "missing"])
def test_ranges_of_columns_without_statistics_are_unknown(
    connector: Connector, column: str
) -> None:
    table = create(connector, {"id": "int"})
    append_with_pypaimon(table, [{"id": 1}])
    ((_, entry),) = connector.metadata.load_table(NAME).native.files.located_entries

    assert data_files.column_range(entry, column) == (None, None, None)
