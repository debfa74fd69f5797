"""Which settings a cluster may set, and what to write instead of the others."""

from __future__ import annotations

import re

import pytest

from spark_jobs.contract.spark_settings import HADOOP_NAMES, decides_meaning, deciding, instead_of

ALLOWED = (
    "spark.driver.memory",
    "spark.executorEnv.LANG",
    "spark.hadoop.fs.defaultFS",
    "spark.hadoop.fs.s3a.endpoint",
    "spark.sql.adaptive.coalescePartitions.enabled",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.shuffle.partitions",
    "spark.sql.ui.retainedExecutions",
)
DECIDING = (
    "orc.skip.corrupt.data",
    "spark.files.ignoreCorruptFiles",
    "spark.hadoop.mapreduce.input.pathFilter.class",
    "spark.hadoop.parquet.filter.stats.enabled",
    "spark.sql.adaptive.optimizer.excludedRules",
    "spark.sql.ansi.enabled",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.execution.arrow.maxRecordsPerOutputBatch",
    "spark.sql.extensions",
    "spark.sql.parser.escapedStringLiterals",
    "spark.sql.settingOfALaterVersion",
)


def test_what_is_not_known_to_be_harmless_decides() -> None:
    assert deciding([*ALLOWED, *reversed(DECIDING)]) == list(DECIDING)


@pytest.mark.parametrize("name", ["parquet.x", "orc.x", "mapred.x", "fs.x", "xparquet.y"])
def test_the_expression_for_java_is_about_the_same_names(name: str) -> None:
    assert bool(re.match(HADOOP_NAMES, name)) == decides_meaning(name)


def test_what_to_write_instead() -> None:
    assert "session_time_zone=" in instead_of("spark.sql.session.timeZone")
    assert instead_of("spark.sql.parser.escapedStringLiterals").startswith("Leave it out")
