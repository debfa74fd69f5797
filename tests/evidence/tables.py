"""Tables and files with all layouts, as other writers make them."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from pypaimon import CatalogFactory, Schema

from spark_jobs.connectors.iceberg.read.scan import IcebergScan
from spark_jobs.connectors.paimon.read.scan import PaimonScan
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from tests.evidence.layouts import Layout, all_rows, schema, write
from tests.support.iceberg_files import catalog_spec, open_catalog

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector, ConnectorScan

NAME: Final = TableName("db", "edges")
_STATISTICS: Final = {"metadata.stats-mode": "full"}
_OPTIONS: Final = {
    "append": _STATISTICS,
    "vectors": {**_STATISTICS, "deletion-vectors.enabled": "true"},
    "keyed": {**_STATISTICS, "bucket": "1"},
}
_PAIMON: Final = tuple(_OPTIONS)
_ICEBERG: Final = {"iceberg": "full", "iceberg-truncated": "truncate(2)", "iceberg-bare": "none"}
TABLES: Final = (*_PAIMON, *_ICEBERG)


def make_table(kind: str, folder: Path) -> CatalogSpec:
    """A table of all layouts, each in a file of its own; returns its catalog."""
    folder.mkdir()
    if kind in _ICEBERG:
        return _iceberg(folder, _ICEBERG[kind])
    return _paimon(kind, folder)


def scans(kind: str, connector: Connector) -> dict[str, ConnectorScan]:
    """The table's readers, by name."""
    if kind in _ICEBERG:
        return {"spark": IcebergScan("spark"), "arrow": IcebergScan("pyarrow")}
    filesystem = connector.storage.filesystem
    arrow = PaimonScan(filesystem, "pyarrow")
    return {"arrow": arrow} if kind == "keyed" else {"spark": connector.scan, "arrow": arrow}


def make_files(kind: str, folder: Path) -> Path:
    """A folder with the same files as a source: ``parquet`` or ``orc``."""
    folder.mkdir()
    for number, (layout, content) in enumerate(all_rows()):
        path = folder / f"part-{number:03}.{kind}"
        write(layout, content, path)
        if kind == "orc":
            orc.write_table(_for_orc(pq.read_table(path)), path)
    return folder


def _for_orc(rows: pa.Table) -> pa.Table:
    """The rows without dates and times, which ORC has in an older calendar."""
    return rows.drop_columns([f.name for f in rows.schema if pa.types.is_temporal(f.type)])


def _paimon(kind: str, folder: Path) -> CatalogSpec:
    catalog = CatalogFactory.create({"warehouse": str(folder)})
    catalog.create_database(NAME.database, True)
    # The type of times is that of files: Paimon has times of milliseconds.
    made = Schema.from_pyarrow_schema(
        schema(of_files=True),
        primary_keys=["id"] if kind == "keyed" else [],
        options=_OPTIONS[kind],
    )
    catalog.create_table(str(NAME), made, False)
    table = catalog.get_table(str(NAME))
    write_parquet = table.file_io.write_parquet
    builder = table.new_batch_write_builder()
    messages: list[Any] = []
    for layout, content in all_rows():
        table.file_io.write_parquet = functools.partial(write_parquet, **_laid_out(layout))
        writer = builder.new_write()
        writer.write_arrow(pa.Table.from_pylist(content, schema(of_files=True)))
        messages += writer.prepare_commit()
        writer.close()
    commit = builder.new_commit()
    commit.commit(messages)
    commit.close()
    return CatalogSpec("paimon", str(folder))


def _laid_out(layout: Layout) -> dict[str, Any]:
    return {
        "row_group_size": layout.row_group_size,
        "use_dictionary": layout.dictionary,
        "write_page_index": True,
    }


def _iceberg(folder: Path, metrics: str) -> CatalogSpec:
    catalog = open_catalog(folder)
    catalog.create_namespace(NAME.database)
    table = catalog.create_table(
        (NAME.database, NAME.table),
        schema(of_files=False),
        properties={"format-version": "2", "write.metadata.metrics.default": metrics},
    )
    files = make_files("parquet", folder / "landed")
    table.add_files([f"file://{path}" for path in sorted(files.iterdir())])
    return catalog_spec(folder)


def opened(kind: str, folder: Path) -> tuple[CatalogSpec, Connector]:
    """A new table and its connector, which reads with Spark where it can."""
    spec = make_table(kind, folder)
    connector = open_connector(spec, {})
    reader = next(iter(scans(kind, connector).values()))
    return spec, replace(connector, scan=reader)
