"""Statements on disks that are full. ``python -m tests.attacks.on_small_disks FOLDER``.

Spark's local folder, and a warehouse of each format, are small disks below ``FOLDER``. Prints what
each statement ended with.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource
from spark_jobs.run import run
from tests.support.paimon_tables import NAME, create
from tests.support.spark_session import local_session

_ROWS = "SELECT id, sha2(CAST(id AS STRING), 512) AS v FROM range({0})"


def catalogs(folder: Path) -> dict[str, CatalogSpec]:
    """A catalog of each format; the database of Iceberg's is on a disk with room."""
    options = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"{folder}/iceberg",
        "init_catalog_tables": "true",
    }
    return {
        "paimon": CatalogSpec("paimon", str(folder / "paimon")),
        "iceberg": CatalogSpec("iceberg", str(folder / "iceberg"), options),
    }


def filled(folder: Path, left: int = 0) -> Path:
    """A file that takes all room of a disk but ``left`` bytes."""
    status = os.statvfs(folder)
    path = folder / "filler"
    with path.open("wb") as file:
        size = status.f_bavail * status.f_frsize - left
        os.posix_fallocate(file.fileno(), 0, max(size, 1))
    return path


def inserted(spark: SparkSession, catalog: CatalogSpec, rows: int, query: str) -> dict[str, Any]:
    """What an INSERT of so many rows ended with."""
    source = SqlSource("s", query.format(rows))
    request = JobRequest(str(uuid.uuid4()), NAME, catalog, InsertIntoSpec("s"), (source,))
    result = run(request, spark)
    return {"status": result.status, "error": asdict(result.error) if result.error else None}


def counted(catalog: CatalogSpec) -> int:
    """The rows of the table."""
    metadata = open_connector(catalog, {}).metadata
    return sum(each.live_row_count for each in metadata.plan_files(metadata.load_table(NAME)))


def main(folder: Path) -> None:
    """Try each disk."""
    told: dict[str, Any] = {}
    os.environ["SPARK_LOCAL_DIRS"] = str(folder / "local")
    with local_session(folder / "spark", interpreted=True) as spark:
        for name, catalog in catalogs(folder).items():
            create(open_connector(catalog, {}), {"id": "bigint", "v": "string"})
            first = inserted(spark, catalog, 10, _ROWS)
            filler = filled(Path(catalog.warehouse), left=200_000)
            full = inserted(spark, catalog, 20_000, _ROWS)
            kept = counted(catalog)
            filler.unlink()
            told[name] = [first, full, kept, inserted(spark, catalog, 10, _ROWS), counted(catalog)]
        filler = filled(folder / "local")
        shuffled = _ROWS + " ORDER BY v"
        told["local"] = inserted(spark, catalogs(folder)["paimon"], 20_000, shuffled)
        filler.unlink()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
