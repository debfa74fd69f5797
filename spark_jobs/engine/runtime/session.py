"""Spark settings that affect results: fixed by the job, never inherited from the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.contract.spark_settings import deciding
from spark_jobs.engine.runtime.java_names import mapping
from spark_jobs.engine.runtime.progress import log
from spark_jobs.engine.runtime.surroundings import require_plain_surroundings
from spark_jobs.pushed_filters import READER_SETTINGS


def meaningful_settings(session_time_zone: str) -> dict[str, str]:
    """The settings that every statement has, where Spark's default is not meant or varies."""
    return {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.session.timeZone": session_time_zone,
        "spark.sql.storeAssignmentPolicy": "ANSI",
        # Text from tables and requests must not read the driver's environment: ${env:NAME}.
        "spark.sql.variable.substitute": "false",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        "spark.sql.parquet.binaryAsString": "false",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        "spark.sql.parquet.int96AsTimestamp": "true",
        # It would shift the timestamps of files that Java did not write.
        "spark.sql.parquet.int96TimestampConversion": "false",
        # Spark refuses whole files otherwise, whatever is read of them (source.nanoseconds).
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        "spark.sql.legacy.charVarcharAsString": "false",
        "spark.sql.readSideCharPadding": "true",
        "spark.sql.execution.arrow.useLargeVarTypes": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.files.ignoreCorruptFiles": "false",
        **READER_SETTINGS,
    }


@contextmanager
def fixed_meaning(spark: SparkSession | None, session_time_zone: str) -> Iterator[dict[str, str]]:
    """Run a block in which no setting of the cluster changes what a statement means.

    Within it, the session has ``meaningful_settings``, which the block gets, and Spark's defaults
    for everything else that ``spark_settings`` does not allow a cluster to set, and for sizes
    with which Spark reads nothing.

    Raises:
        NotSupportedError: something that cannot be set once there is a session decides otherwise.
    """
    settings = meaningful_settings(session_time_zone)
    if spark is None:
        yield settings
        return
    require_plain_surroundings(spark)
    conf = spark._jsparkSession.sessionState().conf()
    names = mapping(spark, conf.settings())
    foreign = [*deciding(names.keys() - settings.keys()), *_impossible_sizes(conf)]
    if foreign:
        log.info("not in effect, as they can change rows: %s", ", ".join(foreign))
    with fixed_settings(spark, {**dict.fromkeys(foreign), **settings}):
        yield settings


def _impossible_sizes(conf: Any) -> list[str]:
    """Sizes with which Spark's readers of files fail, or read no row and say nothing."""
    sizes = (
        ("files.maxPartitionBytes", conf.filesMaxPartitionBytes(), 1),
        ("files.openCostInBytes", conf.filesOpenCostInBytes(), 0),
        ("orc.columnarReaderBatchSize", conf.orcVectorizedReaderBatchSize(), 1),
        ("parquet.columnarReaderBatchSize", conf.parquetVectorizedReaderBatchSize(), 1),
    )
    return [f"spark.sql.{name}" for name, size, least in sizes if size < least]


@contextmanager
def fixed_settings(
    spark: SparkSession | None, settings: Mapping[str, str | None]
) -> Iterator[None]:
    """Run a block under ``settings``; afterwards, restore the session's previous settings.

    None stands for Spark's default. Without a session, only run the block.
    """
    if spark is None:
        yield
        return
    # Not through ``spark.conf``: static settings, such as those of the log, are changed too.
    conf = spark._jsparkSession.sessionState().conf()
    stored = mapping(spark, conf.settings())
    before = {key: stored.get(key) for key in settings if stored.get(key) != settings[key]}
    for key in before:
        _set(conf, key, settings[key])
    try:
        yield
    finally:
        for key, previous in before.items():
            _set(conf, key, previous)


@contextmanager
def kept_settings(spark: SparkSession) -> Iterator[None]:
    """Run a block of others' code; afterwards, the session has the settings that it had before."""
    conf = spark._jsparkSession.sessionState().conf()
    before = dict(mapping(spark, conf.settings()))
    try:
        yield
    finally:
        after = dict(mapping(spark, conf.settings()))
        for key in {key for key, _ in before.items() ^ after.items()}:
            _set(conf, key, before.get(key))


def _set(conf: Any, key: str, value: str | None) -> None:
    if value is None:
        conf.unsetConf(key)
    else:
        conf.setConfString(key, value)
