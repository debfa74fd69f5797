"""Tables, statements and definitions that are refused by name, before data is read."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.datafiles.parquet.options import CODECS
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg import refused_properties
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    made = PlainCatalog(tmp_path)
    rows = pa.Table.from_pylist([{"id": 1, "s": "x"}], schema=SCHEMA)
    made.create(SCHEMA, {"format-version": "2"}, rows)
    return made


def test_properties_that_would_be_disobeyed(catalog: PlainCatalog, connector: Connector) -> None:
    for name, value in {
        "write.location-provider.impl": "org.example.Elsewhere",
        "write.format.default": "vortex",
        "encryption.key-id": "key",
        "write.parquet.compression-codec": "lzo",
        "write.update.mode": "as-you-like",
        "write.delete.isolation-level": "none",
    }.items():
        library = catalog.library().load_table(("db", "t"))
        with library.transaction() as transaction:
            transaction.set_properties({name: value})
        table = connector.metadata.load_table(NAME)

        with pytest.raises(NotSupportedError, match=name):
            connector.metadata.require_writable(table)

        assert len(connector.metadata.plan_files(table)) == 1
        with library.transaction() as transaction:
            transaction.remove_properties(name)
    connector.metadata.require_writable(connector.metadata.load_table(NAME))


def test_partition_fields_of_several_columns(catalog: PlainCatalog, connector: Connector) -> None:
    path = Path(urlsplit(catalog.library().load_table(("db", "t")).metadata_location).path)
    field = {"source-ids": [1, 2], "field-id": 1000, "name": "both", "transform": "bucket[4]"}
    document = json.loads(path.read_text())
    specs = [*document["partition-specs"], {"spec-id": 1, "fields": [field]}]
    path.write_text(json.dumps({**document, "partition-specs": specs}))

    with pytest.raises(NotSupportedError, match="partition-specs"):
        connector.metadata.load_table(NAME)


def test_every_codec_of_a_property_is_known_to_the_writer() -> None:
    assert {*refused_properties.CODECS} == {*CODECS} - {"none"}


@pytest.mark.parametrize(
    ("columns", "options", "named"),
    [
        ([("a", kind)], {}, kind.partition("(")[0])
        for kind in ("TINYINT", "SMALLINT", "CHAR(3)", "VARCHAR(3)", "ARRAY<TINYINT>")
    ]
    + [([("a", "INT")], {"format-version": "4"}, "version 4")],
)
def test_definitions(
    connector: Connector, columns: list[tuple[str, str]], options: dict[str, str], named: str
) -> None:
    spec = CreateTableSpec(tuple(ColumnSpec(*each) for each in columns), table_options=options)
    name = TableName("elsewhere", "n")

    with pytest.raises(NotSupportedError) as caught:
        connector.metadata.create_table(name, spec)

    assert named.removeprefix("ARRAY<").removesuffix(">") in caught.value.message
    assert ("elsewhere",) not in connector.writes.catalog.opened.list_namespaces()  # type: ignore[attr-defined]


def test_statements_that_are_not_there_yet(connector: Connector) -> None:
    with pytest.raises(NotSupportedError, match=r"t\$files is a metadata table"):
        connector.metadata.load_table(TableName("db", "t$files"))
    spec = CreateTableSpec((ColumnSpec("a", "INT"),))
    with pytest.raises(NotSupportedError, match="is a branch"):
        connector.metadata.create_table(TableName("db", "t$branch_b"), spec)
