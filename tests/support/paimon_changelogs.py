"""Tables with a primary key and a changelog in each snapshot, for the connector's tests."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, append_with_pypaimon


def with_changelogs(connector: Connector, warehouse: Path, snapshots: int) -> Path:
    """The folder of a new table of one bucket, whose snapshots each add a row."""
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database(NAME.database, True)
    columns = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.string())])
    options = {"bucket": "1", "changelog-producer": "input"}
    schema = Schema.from_pyarrow_schema(columns, [], ["id"], options)
    catalog.create_table(str(NAME), schema, False)
    for number in range(snapshots):
        append_with_pypaimon(connector.metadata.load_table(NAME), [{"id": number, "v": "x"}])
    return warehouse / f"{NAME.database}.db" / NAME.table
