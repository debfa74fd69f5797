"""Tables that no job reads or changes, by their properties, are told before Spark starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.inserts import InsertIntoSpec, TruncateTableSpec
from spark_jobs.contract.request import TableName, TableSource
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.errors import NotSupportedError
from tests.support.paimon_metadata import TableFiles

NAME = TableName("shop", "orders")
OTHER = TableName("shop", "others")
CHANGES: dict[str, tuple[Any, tuple[TableSource, ...]]] = {
    "delete": (DeleteSpec("true"), ()),
    "truncate": (TruncateTableSpec(), ()),
    "insert": (InsertIntoSpec("s"), (TableSource("s", OTHER),)),
}


def check(hook: CatalogHook) -> MetadataCheck:
    return MetadataCheck(hook, shares_files=True)


@pytest.fixture
def paimon(warehouse: Path) -> Path:
    """The warehouse of the connection, with a table that may be read and changed."""
    TableFiles(warehouse, OTHER.table).create()
    return warehouse


@pytest.mark.parametrize(("spec", "sources"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("option", ["commit.callbacks", "scan.snapshot-id"])
def test_a_target_of_paimon(paimon: Path, option: str, spec: Any, sources: Any) -> None:
    TableFiles(paimon, NAME.table).create(**{option: "7"})
    hook = catalog_hook("paimon_default")

    with pytest.raises(NotSupportedError, match=rf"shop\.orders .*option {option} = 7"):
        check(hook).require_valid(NAME, spec, sources)

    check(hook).require_valid(OTHER, spec, sources)


@pytest.mark.parametrize("option", ["commit.callbacks", "target-file-size"])
def test_a_compaction_of_paimon(paimon: Path, option: str) -> None:
    TableFiles(paimon, NAME.table).create(**{option: "many"})

    with pytest.raises(NotSupportedError, match=option):
        check(catalog_hook("paimon_default")).require_valid(NAME, CompactSpec(), ())


def test_a_source_of_paimon(paimon: Path) -> None:
    hook = catalog_hook("paimon_default")
    source = TableSource("s", NAME)
    table = TableFiles(paimon, NAME.table)

    table.create(**{"commit.callbacks": "7"})
    check(hook).require_sources((source,))
    table.create(**{"scan.snapshot-id": "7"})
    with pytest.raises(NotSupportedError, match=r"scan\.snapshot-id"):
        check(hook).require_sources((source,))


def test_options_beside_a_key(paimon: Path) -> None:
    schema = TableFiles(paimon, NAME.table).create().folder / "schema" / "schema-0"
    document = json.loads(schema.read_text())
    options = {"bucket": "1", "sequence.snapshot-ordering": "true"}
    schema.write_text(json.dumps({**document, "primaryKeys": ["id", "day"], "options": options}))

    with pytest.raises(NotSupportedError, match=r"primary key \(id, day\) and the option sequence"):
        check(catalog_hook("paimon_default")).require_valid(NAME, *CHANGES["delete"])


@pytest.fixture
def iceberg(iceberg_catalog: Any) -> Any:
    """The catalog of the connection, with a table that may be read and changed."""
    iceberg_catalog.create_namespace("shop")
    for name in (NAME, OTHER):
        fields = Schema(NestedField(1, "id", LongType(), required=False))
        iceberg_catalog.create_table(str(name), fields)
    return iceberg_catalog


@pytest.mark.parametrize(("spec", "sources"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize(
    ("name", "value"), [("write.format.default", "vortex"), ("encryption.key-id", "key")]
)
def test_a_target_of_iceberg(iceberg: Any, name: str, value: str, spec: Any, sources: Any) -> None:
    with iceberg.load_table(str(NAME)).transaction() as transaction:
        transaction.set_properties({name: value})
    hook = catalog_hook("iceberg_default")

    with pytest.raises(NotSupportedError, match=rf"shop\.orders: property {name}"):
        check(hook).require_valid(NAME, spec, sources)

    check(hook).require_valid(OTHER, spec, (TableSource("s", NAME),) if sources else ())


def test_version_3_of_iceberg_is_a_target(iceberg: Any) -> None:
    path = Path(urlsplit(iceberg.load_table(str(NAME)).metadata_location).path)
    metadata = json.loads(path.read_text())
    path.write_text(json.dumps({**metadata, "format-version": 3, "next-row-id": 1}))
    found = check(catalog_hook("iceberg_default"))

    found.require_valid(NAME, *CHANGES["delete"])
    found.require_sources((TableSource("s", NAME),))
