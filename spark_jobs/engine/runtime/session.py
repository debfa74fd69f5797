"""Spark settings that affect results: fixed by the job, never inherited from the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from spark_jobs.pushed_filters import READER_SETTINGS


def meaningful_settings(session_time_zone: str) -> dict[str, str]:
    """The settings under which every statement runs."""
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
        "spark.sql.legacy.charVarcharAsString": "false",
        "spark.sql.readSideCharPadding": "true",
        "spark.sql.execution.arrow.useLargeVarTypes": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.files.ignoreCorruptFiles": "false",
        **READER_SETTINGS,
    }


@contextmanager
def fixed_settings(spark: SparkSession | None, settings: Mapping[str, str]) -> Iterator[None]:
    """Run a block under ``settings``; afterwards, restore the session's previous settings.

    Without a session, only run the block.
    """
    if spark is None:
        yield
        return
    before = {key: spark.conf.get(key, None) for key in settings}
    before = {key: previous for key, previous in before.items() if previous != settings[key]}
    for key in before:
        spark.conf.set(key, settings[key])
    try:
        yield
    finally:
        for key, previous in before.items():
            if previous is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, previous)
