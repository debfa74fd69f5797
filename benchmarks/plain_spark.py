"""The other side: MERGE as one would write it by hand in plain Spark.

Copy-on-write: first the touched files are found by a broadcast join, then their rows are joined
with the source and written anew. Adaptive execution is on; codec, memory and the number of files of
the mixed merge are those of this project. It publishes nothing, which favours it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

ASSIGNED = ("price", "comment")
INSERTED = ("id", *ASSIGNED)


def merge(
    spark: SparkSession,
    files: Sequence[str],
    source: DataFrame,
    out: Path,
    *,
    inserts: bool,
    file_format: str = "parquet",
) -> list[str]:
    """Update or delete the rows that ``source`` matches, insert the others; the files read.

    ``file_format`` is that of ``files``; the new files are parquet, as this project's are.
    """
    read = spark.read.format(file_format)
    target = read.load(list(files))
    touched = _touched(target, source)
    old = read.load(touched).withColumn("_target", F.lit(True)).alias("t")
    new = source.withColumn("_source", F.lit(True)).alias("s")
    joined = (
        old.join(new, F.expr("t.id = s.id"), "full_outer")
        if inserts
        else old.join(F.broadcast(new), F.expr("t.id = s.id"), "left_outer")
    )
    kept = joined.where("NOT (_target IS NOT NULL AND _source IS NOT NULL AND s.del)")
    columns = [_value(name).alias(name) for name in target.columns]
    kept.select(*columns).write.option("compression", "zstd").parquet(str(out))
    return touched


def keyed_merge(
    spark: SparkSession, files: Sequence[str], key: str, source: DataFrame, out: Path
) -> None:
    """Update or insert the rows of ``source`` in a table with the primary key ``key``.

    The files have Paimon's records, of which the newest of a key counts.
    """
    records = spark.read.parquet(*files)
    newest = Window.partitionBy(key).orderBy(F.col("_SEQUENCE_NUMBER").desc())
    rows = (
        records.withColumn("_age", F.row_number().over(newest))
        .where("_age = 1 AND _VALUE_KIND IN (0, 2)")
        .drop(f"_KEY_{key}", "_SEQUENCE_NUMBER", "_VALUE_KIND", "_age")
    )
    old = rows.withColumn("_target", F.lit(True)).alias("t")
    new = source.withColumn("_source", F.lit(True)).alias("s")
    joined = old.join(new, F.expr(f"t.{key} = s.{key}"), "full_outer")
    columns = [_value(name).alias(name) for name in rows.columns]
    joined.select(*columns).write.option("compression", "zstd").parquet(str(out))


def _touched(target: DataFrame, source: DataFrame) -> list[str]:
    keys = target.select("id", F.col("_metadata.file_path").alias("file"))
    matching = keys.join(F.broadcast(source.select("id")), "id", "left_semi")
    return [row["file"] for row in matching.select("file").distinct().collect()]


def _value(name: str) -> Column:
    inserted = F.col(f"s.{name}") if name in INSERTED else F.lit(None)
    updated = F.col(f"s.{name}") if name in ASSIGNED else F.col(f"t.{name}")
    return (
        F.when(F.col("_target").isNull(), inserted)
        .when(F.col("_source").isNotNull(), updated)
        .otherwise(F.col(f"t.{name}"))
    )
