"""Local catalogs of both formats, beside the one that every test has, and their rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.live.client import Client
from tests.live.spark_python import SparkPython

# Run in the Spark environment.
_NEW_CATALOG = """
import sys
from pyiceberg.catalog.sql import SqlCatalog
SqlCatalog(sys.argv[1], uri=f"sqlite:///{sys.argv[2]}/catalog.db", warehouse=sys.argv[2]).close()
"""
_READ = """
import json, sys
name, warehouse, table = sys.argv[1:]
if name.endswith("paimon"):
    from pypaimon import CatalogFactory
    table = CatalogFactory.create({"warehouse": warehouse}).get_table(table)
    builder = table.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
else:
    from pyiceberg.catalog.sql import SqlCatalog
    with SqlCatalog(name, uri=f"sqlite:///{warehouse}/catalog.db") as library:
        rows = library.load_table(table).scan().to_arrow()
print(json.dumps(sorted(map(list, map(dict.values, rows.to_pylist()))), default=str))
"""


def add_catalog(
    client: Client, spark_python: SparkPython, name: str, format_: str, warehouse: Path
) -> None:
    """Make a catalog, and its connection ``name``, which ends with the format."""
    warehouse.mkdir()
    extra = {"warehouse": str(warehouse)}
    told: dict[str, Any] = {"conn_type": "paimon", "extra": json.dumps(extra)}
    if format_ == "iceberg":
        spark_python.run(_NEW_CATALOG, name, str(warehouse))
        host = f"sqlite:///{warehouse}/catalog.db"
        told = {"conn_type": "iceberg", "host": host, "extra": json.dumps({"type": "sql", **extra})}
    client.call("POST", "/connections", {"connection_id": name, **told})


def rows_of(spark_python: SparkPython, name: str, warehouse: Path, table: str) -> Any:
    """The rows of a table of such a catalog, sorted."""
    return json.loads(spark_python.run(_READ, name, str(warehouse), table))
