"""This project on tables of Iceberg, as an engine of the comparison."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.comparison import timed
from benchmarks.natives import engines
from benchmarks.natives.data import Data
from benchmarks.natives.here import statement_of, wake
from benchmarks.natives.peers import ICEBERG, iceberg_master, iceberg_modes
from benchmarks.natives.works import Work
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName

_CATALOG = "bench"


class HereIceberg:
    """Implements ``engines.Engine``: a SQL catalog, in SQLite, of the tables that Iceberg wrote.

    They are upgraded to ``version`` before each round.
    """

    def __init__(self, spark: SparkSession, version: int) -> None:
        self._spark = spark
        self._version = version
        self._live = ICEBERG / engines.DATABASE
        self._plan = ""

    @property
    def told(self) -> str:
        """How the last statement ran, and its seconds by phase."""
        return self._plan

    def load(self, data: Data, work: Work) -> None:
        """Check that the master is there."""
        if not iceberg_master(data, work).exists():
            raise SystemExit("here-iceberg takes the tables of iceberg: measure both in one run")

    def restore(self, data: Data, work: Work) -> Path:
        """Copy the master, and register its tables."""
        shutil.rmtree(self._live, ignore_errors=True)
        engines.linked_copy(iceberg_master(data, work), self._live, lambda path: "/data/" in path)
        self._register(work)
        wake(self._spark)
        return self._live

    def run(self, data: Data, work: Work) -> None:
        """Run the statement."""
        name = TableName(engines.DATABASE, work.table)
        statement, sources = statement_of(data, work, name)
        _, result = timed(self._spark, self._catalog, name, statement, *sources)
        self._plan = f"{result.metrics.plan} {dict(result.metrics.seconds)}"

    def rows(self, data: Data, work: Work) -> DataFrame:
        """The rows of the copy, as this project reads them."""
        connector = open_connector(self._catalog, {})
        table = connector.metadata.load_table(TableName(engines.DATABASE, work.table))
        files = connector.metadata.plan_files(table)
        found = connector.scan.read(self._spark, table, files, table.column_names)
        return found.select(*table.column_names)

    def drop(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self._live)

    @property
    def _catalog(self) -> CatalogSpec:
        options = {
            "type": "sql",
            "uri": f"sqlite:///{self._live}/catalog.db",
            "warehouse": f"file://{ICEBERG}",
            "catalog-name": _CATALOG,
        }
        return CatalogSpec("iceberg", str(self._live), options)

    def _register(self, work: Work) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        options = self._catalog.options
        with SqlCatalog(_CATALOG, uri=options["uri"], warehouse=options["warehouse"]) as catalog:
            catalog.create_namespace(engines.DATABASE)
            for folder in filter(Path.is_dir, self._live.iterdir()):
                name = (engines.DATABASE, folder.name)
                metadata = self._upgraded(folder / "metadata", iceberg_modes(work))
                catalog.register_table(name, f"file://{metadata}")

    def _upgraded(self, folder: Path, properties: Mapping[str, str]) -> Path:
        """A metadata file of the version and with the properties."""
        latest = max(
            folder.glob("v*.metadata.json"), key=lambda path: int(path.name[1:].partition(".")[0])
        )
        document = json.loads(latest.read_text())
        document["format-version"] = self._version
        document["properties"] |= properties
        if self._version == 3:
            document["next-row-id"] = 0
        upgraded = folder / "00000-upgraded.metadata.json"
        upgraded.write_text(json.dumps(document))
        return upgraded
