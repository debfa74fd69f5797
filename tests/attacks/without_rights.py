"""Statements in folders that may not be written. ``python -m tests.attacks.without_rights FOLDER``.

Whoever runs it must be somebody whom rights bind. Prints what each statement ended with, by format
and folder, and the rows of the table in the end.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_jobs.connectors.registry import open_connector
from tests.attacks.on_small_disks import catalogs, counted, inserted
from tests.support.paimon_tables import create
from tests.support.spark_session import local_session

_QUERY = "SELECT id, CAST(id AS STRING) AS v FROM range({0})"
# Below the warehouse: what the driver publishes in, and what tasks write in.
_FOLDERS = {
    "paimon": ("shop.db/orders/snapshot", "shop.db/orders/bucket-0"),
    "iceberg": ("shop/orders/metadata", "shop/orders/data"),
}


@contextmanager
def _read_only(folder: Path) -> Iterator[None]:
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


def main(folder: Path) -> None:
    """Try each folder."""
    told: dict[str, Any] = {}
    with local_session(folder / "spark", interpreted=True) as spark:
        for name, catalog in catalogs(folder).items():
            warehouse = Path(catalog.warehouse)
            warehouse.mkdir()
            create(open_connector(catalog, {}), {"id": "bigint", "v": "string"})
            ended = [inserted(spark, catalog, 10, _QUERY)]
            assert ended[0]["status"] == "committed", ended
            for each in ("_operations", *_FOLDERS[name]):
                with _read_only(warehouse / each):
                    ended.append(inserted(spark, catalog, 10, _QUERY))
            told[name] = [*ended, counted(catalog)]
    sys.stdout.write(json.dumps({"user": os.geteuid(), **told}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
