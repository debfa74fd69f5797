"""A REST catalog of Iceberg tables, which lie in an S3 store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.judge.iceberg_server import CLIENT, IcebergRest, iceberg_rest_or_skip
from tests.live.spark_python import SparkPython
from tests.live.store import Store
from tests.support.gateway import gateway_program_or_skip

# Run in the Spark environment: another writer and reader.
_LIBRARY = """
import json, sys
from datetime import date
from decimal import Decimal
import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
catalog = RestCatalog("other", **json.loads(sys.argv[1]))
"""
_LOOK = """
table = catalog.load_table(sys.argv[2])
rows = [list(map(str, row.values())) for row in table.scan().to_arrow().to_pylist()]
made = sorted(table.snapshots(), key=lambda each: each.sequence_number)
print(json.dumps({"rows": sorted(rows), "ids": [each.snapshot_id for each in made]}))
"""


@dataclass(frozen=True)
class Lake:
    """A catalog, and the store of its tables."""

    catalog: IcebergRest
    store: Store
    python: SparkPython

    @property
    def secrets(self) -> dict[str, str]:
        """What nobody may see, by its name."""
        keys: dict[str, Any] = {
            "access key": self.store.access_key,
            "secret key": self.store.secret_key,
        }
        return {**keys, "client's secret": self.catalog.secret}

    @property
    def keys(self) -> dict[str, str]:
        """The options of the store."""
        return {
            "s3.endpoint": self.store.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": self.store.access_key,
            "s3.secret-access-key": self.store.secret_key,
        }

    def connection(self, conn_id: str) -> dict[str, str]:
        """As Airflow's API takes it."""
        return {
            "connection_id": conn_id,
            "conn_type": "iceberg",
            "host": self.catalog.uri,
            "login": CLIENT,
            "password": self.catalog.secret,
            "extra": json.dumps({"workspace": f"s3://{self.store.bucket.name}/work", **self.keys}),
        }

    def run(self, code: str, *arguments: str) -> str:
        """Run code in the Spark environment, which knows pyiceberg's ``catalog``."""
        properties = json.dumps({**self.catalog.properties, **self.keys})
        return self.python.run(_LIBRARY + code, properties, *arguments)

    def look(self, table: str) -> tuple[list[list[str]], list[int]]:
        """The rows, and the ids of all snapshots, as pyiceberg reads them."""
        found = json.loads(self.run(_LOOK, table))
        return found["rows"], found["ids"]


@contextmanager
def running_lake(folder: Path, python: SparkPython) -> Iterator[Lake]:
    """A new catalog and a new store, whose files are below ``folder``."""
    keys: dict[str, Any] = {"access_key": "ICEBERGACCESSKEY", "secret_key": "iceberg-store-secret"}
    store = Store(gateway_program_or_skip(), folder, **keys)
    store.start()
    try:
        with iceberg_rest_or_skip(store.bucket) as catalog:
            yield Lake(catalog, store, python)
    finally:
        store.stop()
