"""The native engines: Iceberg, Delta Lake and Paimon for Spark."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from benchmarks.merge import enable_vectors
from benchmarks.natives import engines
from benchmarks.natives.data import FOLDER, TABLES, Data
from benchmarks.natives.here import load_paimon, paimon_master, paimon_rows
from benchmarks.natives.works import Append, Merge, Work
from spark_jobs.contract.request import TableName

ICEBERG: Final = FOLDER / "iceberg-live"
_PAIMON: Final = FOLDER / "paimon-live"
_EXTENSIONS: Final = {
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "paimon": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
}
_CATALOGS: Final = {
    "iceberg": {
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": str(ICEBERG),
        "spark.sql.catalog.iceberg.cache-enabled": "false",
    },
    "delta": {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
    "paimon": {
        "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.paimon.warehouse": str(_PAIMON),
        "spark.sql.catalog.paimon.cache-enabled": "false",
    },
}


def settings(names: list[str]) -> Mapping[str, str]:
    """The settings of a session that has these engines."""
    kinds = list(dict.fromkeys(name.partition("-")[0] for name in names))
    found = {"spark.sql.extensions": ",".join(_EXTENSIONS[k] for k in kinds if k in _EXTENSIONS)}
    for kind in kinds:
        found |= _CATALOGS.get(kind, {})
    return found


def iceberg_master(data: Data, work: Work) -> Path:
    """The folder with the tables of a work, which know themselves as being below ``ICEBERG``."""
    return data.folder / "iceberg" / work.table


def iceberg_modes(work: Work) -> Mapping[str, str]:
    """The properties that let a work's statement mark rows, or copy files."""
    mode = "merge-on-read" if work.vectors else "copy-on-write"
    return {f"write.{kind}.mode": mode for kind in ("merge", "update", "delete")}


class Iceberg:
    """Implements ``engines.Engine``: a hadoop catalog, with tables of ``version``."""

    def __init__(self, spark: SparkSession, version: int) -> None:
        self._spark = spark
        self._version = version
        self._live = ICEBERG / engines.DATABASE

    def load(self, data: Data, work: Work) -> None:
        """Write the master."""
        master = iceberg_master(data, work)
        if master.exists():
            return
        shutil.rmtree(self._live, ignore_errors=True)
        for name in _names(work):
            for number, file in enumerate(data.table(name)):
                rows = self._spark.read.parquet(str(file)).coalesce(1)
                writer = rows.writeTo(f"iceberg.{engines.DATABASE}.{name}")
                if number:
                    writer.append()
                elif TABLES[name]:
                    writer.using("iceberg").partitionedBy(
                        *map(rows.__getitem__, TABLES[name])
                    ).create()
                else:
                    writer.using("iceberg").create()
        master.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(self._live, master)

    def restore(self, data: Data, work: Work) -> Path:
        """Copy the master."""
        shutil.rmtree(self._live, ignore_errors=True)
        engines.linked_copy(iceberg_master(data, work), self._live, lambda path: "/data/" in path)
        properties = {**iceberg_modes(work), "format-version": str(self._version)}
        texts = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self._spark.sql(f"ALTER TABLE {self._name(work)} SET TBLPROPERTIES ({texts})")
        return self._live

    def run(self, data: Data, work: Work) -> None:
        """Run the statement."""
        staging = f"iceberg.{engines.DATABASE}.staging"
        source = engines.source_rows(self._spark, data, work, lambda: self._spark.table(staging))
        if isinstance(work.statement, Merge):
            self._spark.sql(work.statement.text(self._name(work), engines.SOURCE))
        elif isinstance(work.statement, Append):
            source.writeTo(self._name(work)).append()
        else:
            source.writeTo(self._name(work)).overwritePartitions()

    def rows(self, data: Data, work: Work) -> DataFrame:
        """The rows of the copy."""
        return self._spark.table(self._name(work))

    def drop(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self._live)

    def _name(self, work: Work) -> str:
        return f"iceberg.{engines.DATABASE}.{work.table}"


class Delta:
    """Implements ``engines.Engine``: tables by path."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._live = Path()

    def load(self, data: Data, work: Work) -> None:
        """Write the master."""
        master = self._master(data, work)
        if master.exists():
            return
        building = master.with_name(f"building-{uuid.uuid4().hex}")
        for name in _names(work):
            for file in data.table(name):
                rows = self._spark.read.parquet(str(file)).coalesce(1)
                writer = rows.write.format("delta").mode("append").partitionBy(*TABLES[name])
                writer.save(str(building / name))
        building.rename(master)

    def restore(self, data: Data, work: Work) -> Path:
        """Copy the master."""
        # Another path for each round: the session remembers the versions that it saw of a path.
        self._live = FOLDER / f"delta-live-{uuid.uuid4().hex}"
        master = self._master(data, work)
        engines.linked_copy(master, self._live, lambda path: "/_delta_log/" not in path)
        on = str(work.vectors).lower()
        text = f"('delta.enableDeletionVectors' = '{on}')"
        self._spark.sql(f"ALTER TABLE {self._name(work.table)} SET TBLPROPERTIES {text}")
        return self._live

    def run(self, data: Data, work: Work) -> None:
        """Run the statement."""

        def staging() -> DataFrame:
            return self._spark.read.format("delta").load(str(self._live / "staging"))

        source = engines.source_rows(self._spark, data, work, staging)
        if isinstance(work.statement, Merge):
            self._spark.sql(work.statement.text(self._name(work.table), engines.SOURCE))
            return
        mode = "append" if isinstance(work.statement, Append) else "overwrite"
        writer = source.write.format("delta").mode(mode)
        writer.option("partitionOverwriteMode", "dynamic").save(str(self._live / work.table))

    def rows(self, data: Data, work: Work) -> DataFrame:
        """The rows of the copy."""
        return self._spark.read.format("delta").load(str(self._live / work.table))

    def drop(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self._live)

    def _master(self, data: Data, work: Work) -> Path:
        return data.folder / "delta" / work.table

    def _name(self, table: str) -> str:
        return f"delta.`{self._live / table}`"


class PaimonSpark:
    """Implements ``engines.Engine``: Paimon's own connector, on the same tables as this project."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")

    def load(self, data: Data, work: Work) -> None:
        """Write the master."""
        load_paimon(data, work)

    def restore(self, data: Data, work: Work) -> Path:
        """Copy the master."""
        shutil.rmtree(_PAIMON, ignore_errors=True)
        engines.linked_copy(
            paimon_master(data, work.table), _PAIMON, lambda path: "/bucket-" in path
        )
        if work.vectors:
            enable_vectors(_PAIMON, TableName(engines.DATABASE, work.table))
        return _PAIMON

    def run(self, data: Data, work: Work) -> None:
        """Run the statement."""
        staging = f"paimon.{engines.DATABASE}.staging"
        engines.source_rows(self._spark, data, work, lambda: self._spark.table(staging))
        target = f"paimon.{engines.DATABASE}.{work.table}"
        if isinstance(work.statement, Merge):
            self._spark.sql(work.statement.text(target, engines.SOURCE))
        else:
            kind = "INTO" if isinstance(work.statement, Append) else "OVERWRITE"
            self._spark.sql(f"INSERT {kind} {target} SELECT * FROM {engines.SOURCE}")

    def rows(self, data: Data, work: Work) -> DataFrame:
        """The rows of the copy."""
        name = TableName(engines.DATABASE, work.table)
        return paimon_rows(self._spark, _PAIMON, name, work.vectors)

    def drop(self) -> None:
        """Remove the copy."""
        shutil.rmtree(_PAIMON)


def _names(work: Work) -> tuple[str, ...]:
    """The tables of a master: the work's own and, where partitions are replaced, the new rows."""
    return (work.table, "staging") if work.table == "daily" else (work.table,)
