"""A plan that one would write by hand in plain Spark, on a folder of parquet files.

It finds the files that change by a join, joins their rows with the source and writes them anew. It
commits nothing, which favours it; where the others mark rows, it copies files all the same.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.natives import engines
from benchmarks.natives.data import FOLDER, PARTITIONS, TABLES, Data
from benchmarks.natives.works import ALL, Append, Merge, Work


class Plain:
    """Implements ``engines.Engine``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._live = FOLDER / "plain-live"
        self._replaced: set[str] = set()

    def load(self, data: Data, work: Work) -> None:
        """Write the master."""
        data.table(work.table)
        if work.table == "daily":
            data.table("staging")

    def restore(self, data: Data, work: Work) -> Path:
        """Copy the master."""
        shutil.rmtree(self._live, ignore_errors=True)
        self._replaced = set()
        folder = self._live / "table"
        folder.mkdir(parents=True)
        for file in [] if work.table == "many" else data.table(work.table):
            where = folder
            if TABLES[work.table]:
                number = int(file.stem.removeprefix("part-"))
                where = folder / f"part={number * PARTITIONS // data.files}"
                where.mkdir(exist_ok=True)
            (where / file.name).hardlink_to(file)
        return folder

    def run(self, data: Data, work: Work) -> None:
        """Run the statement."""

        def staging() -> DataFrame:
            return self._spark.read.parquet(*map(str, data.table("staging")))

        source = engines.source_rows(self._spark, data, work, staging)
        if isinstance(work.statement, Merge):
            self._merge(work.statement, source)
            return
        mode = "append" if isinstance(work.statement, Append) else "overwrite"
        (
            source.write.mode(mode)
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy("part")
            .parquet(str(self._live / "table"))
        )

    def rows(self, data: Data, work: Work) -> DataFrame:
        """The rows of the copy."""
        if not isinstance(work.statement, Merge):
            # Files of before have the column of the partition, new ones have not.
            return self._spark.read.parquet(str(self._live / "table"))
        kept = [file for file in self._files() if Path(file).name not in self._replaced]
        new = [str(file) for file in (self._live / "new").glob("*.parquet")]
        return self._spark.read.parquet(*kept, *new)

    def drop(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self._live)

    def _files(self) -> list[str]:
        return [str(file) for file in (self._live / "table").glob("*.parquet")]

    def _merge(self, statement: Merge, source: DataFrame) -> None:
        target = self._spark.read.parquet(*self._files())
        if not (statement.update or statement.delete or statement.orphans):
            new = source.join(target.select(*statement.keys), list(statement.keys), "left_anti")
            self._write(new.select(*target.columns))
            return
        touched = self._touched(statement, target, source)
        self._replaced = {Path(file).name for file in touched}
        old = self._spark.read.parquet(*touched).withColumn("_target", F.lit(True)).alias("t")
        new = source.withColumn("_source", F.lit(True)).alias("s")
        on = F.expr(" AND ".join(f"t.{key} = s.{key}" for key in statement.keys))
        joined = old.join(new, on, "full_outer" if statement.insert else "left_outer")
        matched = "_target IS NOT NULL AND _source IS NOT NULL"
        if statement.delete is not None:
            joined = joined.where(f"NOT coalesce({matched} AND {statement.delete}, false)")
        if statement.orphans is not None:
            joined = joined.where(f"NOT coalesce(_source IS NULL AND {statement.orphans}, false)")
        self._write(joined.select(*(_value(statement, name) for name in target.columns)))

    def _touched(self, statement: Merge, target: DataFrame, source: DataFrame) -> list[str]:
        if statement.orphans is not None:
            return self._files()
        keys = target.select(*statement.keys, F.col("_metadata.file_path").alias("_file"))
        matching = keys.join(source.select(*statement.keys), list(statement.keys), "left_semi")
        return [row["_file"] for row in matching.select("_file").distinct().collect()]

    def _write(self, rows: DataFrame) -> None:
        rows.write.option("compression", "zstd").parquet(str(self._live / "new"))


def _value(statement: Merge, name: str) -> Column:
    old, new = F.col(f"t.{name}"), F.lit(None)
    if name in statement.insert or statement.insert == ALL:
        new = F.col(f"s.{name}")
    updated = name in statement.update or statement.update == ALL
    changed = F.col(f"s.{name}") if updated else old
    value = F.when(F.col("_target").isNull(), new)
    return value.when(F.col("_source").isNotNull(), changed).otherwise(old).alias(name)
