"""Names and metadata that would lead out of a table, or into another statement."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.connectors.paimon.metadata import _default
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.errors import CatalogError, ErrorCode, JobError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, append, change_rows, create, data_files, merge, read

COLUMNS = {"id": "bigint", "k": "string"}
OPTION = "data-file.external-paths"
PAYLOADS = [
    "'); DROP TABLE t; --",
    "it's",
    "\\",
    "\\'",
    "a\\' OR 1=1 --",
    "`x`",
    '"',
    "${env:HOME}",
    "${spark.master}",
    "{{ var.value.x }}",
    "a\nb",
]


@pytest.fixture
def table(connector: Connector, warehouse: Path) -> Path:
    """A table with a deletion vector; its folder."""
    created = create(connector, COLUMNS, options={"deletion-vectors.enabled": "true"})
    append(connector, [{"id": number, "k": "a"} for number in range(50)])
    created = connector.metadata.load_table(NAME)
    merge(connector, created, change_rows(created, rows.DELETE, [{"file": 0, "position": 2}]))
    return warehouse / "shop.db" / "orders"


def edit_avro(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    records = list(reader)
    for record in records:
        change(record)
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(reader.writer_schema), records)
    path.write_bytes(out.getvalue())


def planned(connector: Connector) -> None:
    handle = connector.metadata.load_table(NAME)
    connector.metadata.plan_files(handle)


def error_of(connector: Connector) -> CatalogError:
    with pytest.raises(CatalogError) as raised:
        planned(connector)
    assert raised.value.code is ErrorCode.METADATA_UNREADABLE
    return raised.value


def data_manifest(table: Path) -> Path:
    return next(p for p in (table / "manifest").glob("manifest-*") if "list" not in p.name)


def test_a_data_file_in_a_place_that_no_option_names(
    connector: Connector, table: Path, tmp_path: Path
) -> None:
    (original,) = table.rglob("*.parquet")
    outside = tmp_path / "outside" / original.name
    outside.parent.mkdir()
    shutil.copy(original, outside)

    def change(record: dict[str, Any]) -> None:
        record["_FILE"]["_EXTERNAL_PATH"] = f"file:{outside}"

    edit_avro(data_manifest(table), change)

    assert str(outside) in error_of(connector).message


def test_a_data_file_in_a_place_that_an_earlier_schema_named(
    connector: Connector, table: Path, tmp_path: Path
) -> None:
    (original,) = table.rglob("*.parquet")
    outside = tmp_path / "outside" / "bucket-0" / original.name
    outside.parent.mkdir(parents=True)
    shutil.move(original, outside)

    def change(record: dict[str, Any]) -> None:
        record["_FILE"]["_EXTERNAL_PATH"] = f"file:{outside}"

    edit_avro(data_manifest(table), change)
    first = table / "schema" / "schema-0"
    schema = json.loads(first.read_text())
    (table / "schema" / "schema-1").write_text(json.dumps({**schema, "id": 1}))
    schema["options"] |= {OPTION: f"file:{tmp_path}/outside", f"{OPTION}.strategy": "none"}
    first.write_text(json.dumps(schema))

    planned(connector)


@pytest.mark.parametrize("name", ["../../../outside", "..", "/etc/hosts", "a/b", "", "x" * 300])
@pytest.mark.parametrize("what", ["data file", "manifest", "index file"])
def test_names_of_files_that_lead_elsewhere(
    connector: Connector, table: Path, what: str, name: str
) -> None:
    def change(record: dict[str, Any]) -> None:
        (record["_FILE"] if what == "data file" else record)["_FILE_NAME"] = name

    patterns = {
        "data file": [data_manifest(table).name],
        "manifest": [p.name for p in (table / "manifest").glob("manifest-list-*")],
        "index file": [p.name for p in (table / "manifest").glob("index-manifest-*")],
    }
    for each in patterns[what]:
        edit_avro(table / "manifest" / each, change)

    assert what in error_of(connector).message


@pytest.mark.parametrize("field", ["baseManifestList", "deltaManifestList", "indexManifest"])
def test_a_snapshot_whose_lists_lie_elsewhere(
    connector: Connector, table: Path, field: str
) -> None:
    path = table / "snapshot" / "snapshot-2"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, field: f"../manifest/{document[field]}"}))

    assert "is not the name of a file" in error_of(connector).message


def test_a_snapshot_that_says_that_it_is_another(connector: Connector, table: Path) -> None:
    path = table / "snapshot" / "snapshot-2"
    path.write_text(json.dumps({**json.loads(path.read_text()), "id": 2**62}))

    error_of(connector)
    with pytest.raises(CatalogError):
        connector.metadata.load_table(NAME)


@pytest.mark.parametrize("form", ["{}", "file://{}"])
@pytest.mark.parametrize("name", ["a%2F..%2Fb", "..%2f..%2fx", "%2e%2e", "a?b#c", "$(id)", "a'b`c"])
def test_a_name_is_one_folder_of_the_warehouse(tmp_path: Path, form: str, name: str) -> None:
    warehouse = tmp_path / "lake"
    warehouse.mkdir()
    connector = open_connector(CatalogSpec("paimon", form.format(warehouse)), {})
    target = TableName("shop", name)
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(warehouse)}

    if "$" in name:
        with pytest.raises(JobError, match="system table"):
            connector.metadata.load_table(target)
        return
    create(connector, COLUMNS, ["k"], name=target)
    append(connector, [{"id": 1, "k": "../../x"}, {"id": 2, "k": "%2e%2e"}], name=target)

    assert [row["id"] for row in read(connector, target)] == [1, 2]
    assert os.listdir(warehouse / "shop.db") == [name]  # noqa: PTH208
    assert len(data_files(warehouse)) == 2
    assert {p for p in tmp_path.rglob("*") if not p.is_relative_to(warehouse)} == before


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"spark.sql.parser.escapedStringLiterals": "true"}])
def test_a_default_is_text_and_nothing_else(spark: SparkSession, settings: dict[str, str]) -> None:
    with fixed_settings(spark, settings), fixed_settings(spark, meaningful_settings("UTC")):
        found = spark.range(1).select(
            *(F.expr(_default(text, "string")).alias(f"c{i}") for i, text in enumerate(PAYLOADS))
        )

        assert list(found.collect()[0]) == PAYLOADS
