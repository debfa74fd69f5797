"""Plain constants are what Spark makes of the same text in the same column."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.plain_constants import plain_constant
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.engine.analysis.partition_specs import SparkConstants
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.spi.tables import TableHandle
from tests.support.paimon_tables import create

TYPES = (
    "string",
    "varchar(10)",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "boolean",
    "date",
)
# Each with the number of types that it is plain for.
TEXTS = {
    "NULL": 8,
    "nUlL": 8,
    "''": 2,
    "'x'": 2,
    "' x '": 2,
    "'NULL'": 2,
    "'Ünïcödé 😀'": 2,
    "'%_*$;--'": 2,
    "'${env:HOME}'": 1,
    "'7'": 6,
    "'007'": 6,
    "'+7'": 6,
    "'-0'": 6,
    "'-128'": 6,
    "'-32768'": 5,
    "'2147483647'": 4,
    "'-2147483648'": 3,
    "'999999999999999999'": 2,
    "7": 6,
    "007": 6,
    "-0": 6,
    "-128": 6,
    "32767": 5,
    "-2147483648": 3,
    "2147483648": 3,
    "-999999999999999999": 2,
    "'true'": 3,
    "'false'": 3,
    "true": 3,
    "FALSE": 3,
    "'2026-01-31'": 3,
    "'0001-01-01'": 3,
    "'1582-10-10'": 3,
    "'9999-12-31'": 3,
    "DATE '2026-01-31'": 3,
    "date'0001-01-01'": 3,
    "Date  '1582-10-10'": 3,
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableHandle:
    """A table with a column of each type."""
    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    return create(connector, {f"c{index}": declared for index, declared in enumerate(TYPES)})


@pytest.mark.parametrize(("text", "types"), TEXTS.items(), ids=TEXTS)
def test_spark_agrees(spark: SparkSession, table: TableHandle, text: str, types: int) -> None:
    declared = {column.name: column.type for column in table.columns}
    plain = {name: plain_constant(text, each) for name, each in declared.items()}
    plain = {name: constant for name, constant in plain.items() if constant is not None}
    assert len(plain) == types, "or else less is compared than it seems"

    with fixed_settings(spark, meaningful_settings("America/New_York")):
        evaluator = SparkConstants(spark, table, StatementTime(spark))
        evaluated = evaluator.evaluated(dict.fromkeys(plain, text), "PARTITION")

    assert evaluated == plain
    for name, constant in plain.items():
        assert type(evaluated[name].value) is type(constant.value)
