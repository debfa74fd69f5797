"""CREATE TABLE: each piece of the grammar ends in the contract's field, or is refused by name."""

from __future__ import annotations

import pytest

from airflow_provider_merge.sql.create_table import parse_create_table
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import JobError

A = ColumnSpec("a", "INT")
TABLES = {
    "CREATE TABLE d.t (a INT)": CreateTableSpec((A,)),
    "create table if not exists d.t (a INT) using PAIMON;": CreateTableSpec((A,), format="paimon"),
    "CREATE TABLE d.t (a INT, `b c` STRUCT<x: INT NOT NULL, y: MAP<STRING, INT>> NOT NULL "
    "COMMENT 'it\\'s', c DECIMAL(10, 2) NULL, d TIMESTAMP_NTZ)": CreateTableSpec(
        (
            A,
            ColumnSpec(
                "b c",
                "STRUCT<x: INT NOT NULL, y: MAP<STRING, INT>>",
                nullable=False,
                comment="it's",
            ),
            ColumnSpec("c", "DECIMAL(10, 2)"),
            ColumnSpec("d", "TIMESTAMP_NTZ"),
        )
    ),
    "CREATE TABLE d.t (a INT, b DATE) PARTITIONED BY (b) COMMENT r'\\n' "
    "TBLPROPERTIES ('bucket' = '4', 'x''y', file.compression = zstd, n = -1)": CreateTableSpec(
        (A, ColumnSpec("b", "DATE")),
        ("b",),
        table_options={"bucket": "4", "x": "y", "file.compression": "zstd", "n": "-1"},
        comment="\\n",
    ),
    # Hive's partition columns, and Flink's keys and options.
    "CREATE TABLE d.t (a INT) PARTITIONED BY (dt STRING, h INT COMMENT 'hour')": CreateTableSpec(
        (A, ColumnSpec("dt", "STRING"), ColumnSpec("h", "INT", comment="hour")), ("dt", "h")
    ),
    "CREATE TABLE d.t (a INT, b INT, PRIMARY KEY (a, b) NOT ENFORCED) WITH ('c' = 'd')": (
        CreateTableSpec((A, ColumnSpec("b", "INT")), (), ("a", "b"), {"c": "d"})
    ),
    "CREATE TABLE d.t (a INT, b TIMESTAMP, `c d` STRING) PARTITIONED BY (Days(b), bucket(4, A), a, "
    "truncate ( 10,\n`c d` )) USING Iceberg": CreateTableSpec(
        (A, ColumnSpec("b", "TIMESTAMP"), ColumnSpec("c d", "STRING")),
        ("Days(b)", "bucket(4, A)", "a", "truncate ( 10,\n`c d` )"),
        format="iceberg",
    ),
    "CREATE TABLE d.t (a INT PRIMARY KEY NOT ENFORCED)": CreateTableSpec((A,), (), ("a",)),
}


@pytest.mark.parametrize(("text", "spec"), TABLES.items(), ids=TABLES)
def test_table(text, spec):
    assert parse_create_table(text) == (TableName("d", "t"), spec)


def test_a_table_of_the_database():
    assert parse_create_table("CREATE TABLE t (a INT)", "d")[0] == TableName("d", "t")


def test_defaults_and_like():
    text = """CREATE TABLE d.t (a INT NOT NULL DEFAULT -5 COMMENT 'x', b STRING DEFAULT 'NOT NULL',
              c DECIMAL(5, 2) DEFAULT 1.5, d DATE DEFAULT DATE '2026-01-31' NOT NULL)"""
    columns = parse_create_table(text)[1].columns
    assert [(each.default, each.nullable) for each in columns] == [
        ("-5", False),
        ("'NOT NULL'", True),
        ("1.5", True),
        ("DATE '2026-01-31'", False),
    ]
    like = "CREATE TABLE d.t LIKE `a b`.s USING iceberg TBLPROPERTIES ('a' = 'b') COMMENT 'c'"
    assert parse_create_table(like)[1] == CreateTableSpec(
        table_options={"a": "b"}, comment="c", format="iceberg", like="`a b`.`s`"
    )
    assert parse_create_table("CREATE TABLE t LIKE s", "d")[1].like == "`d`.`s`"


REFUSED = {
    "CREATE OR REPLACE TABLE d.t (a INT)": ("NOT_SUPPORTED", "CREATE OR is not supported"),
    "CREATE TABLE d.t (a INT) USING delta": ("NOT_SUPPORTED", "tables of delta are not"),
    "CREATE TABLE d.t (a INT) LOCATION '/x'": ("NOT_SUPPORTED", "LOCATION is not supported"),
    "CREATE TABLE d.t (a DATE) PARTITIONED BY (a, days(a)) USING paimon": (
        "NOT_SUPPORTED",
        "by columns, not by transforms (near 'days(a)) USING paimon')",
    ),
    "CREATE TABLE d.t (a INT) PARTITIONED BY (bucket(a, 4))": (
        "REQUEST_INVALID",
        "partition_keys: bucket(a, 4): bucket takes a number and a column",
    ),
    "CREATE TABLE d.t (a INT) PARTITIONED BY (day(a) b)": ("SYNTAX_ERROR", "expected ), found 'b'"),
    "CREATE TABLE d.t (a INT) CLUSTERED BY (a) INTO 4 BUCKETS": ("NOT_SUPPORTED", "CLUSTERED is"),
    "CREATE TABLE d.t USING paimon AS SELECT 1": ("NOT_SUPPORTED", "AS is not supported here"),
    "CREATE TABLE d.t (a INT) LIKE d.s": ("REQUEST_INVALID", "columns: cannot be combined with"),
    "CREATE TABLE d.t LIKE lake.d.s": ("SYNTAX_ERROR", "LIKE takes a table of the same catalog"),
    "CREATE TABLE d.t (a INT DEFAULT now())": ("REQUEST_INVALID", "now() is not a literal of"),
    "CREATE TABLE d.t (a INT DEFAULT)": ("SYNTAX_ERROR", "expected a literal, found ')'"),
    "CREATE TABLE d.t (a AS b + 1)": ("NOT_SUPPORTED", "AS is not supported here"),
    "CREATE TABLE d.t (a INT, WATERMARK FOR a AS a)": ("NOT_SUPPORTED", "WATERMARK is not"),
    "CREATE TABLE d.t /*+ OPTIONS('a'='b') */ (a INT)": ("NOT_SUPPORTED", "OPTIONS can stand only"),
    "CREATE TABLE d.t (a)": ("SYNTAX_ERROR", "expected the type of the column, found ')'"),
    "CREATE TABLE d.t (a INT) COMMENT x": ("SYNTAX_ERROR", "expected a text in quotes, found 'x'"),
    "CREATE TABLE d.t (a INT); SELECT 1": ("SYNTAX_ERROR", "a second statement begins"),
    "CREATE TABLE d.t (a INT, A INT)": ("REQUEST_INVALID", "columns: a occurs more than once"),
    "CREATE TABLE d.t (` a` INT)": ("REQUEST_INVALID", "name: ' a' is not an identifier"),
    "CREATE TABLE t (a INT)": ("REQUEST_INVALID", "t is neither a common table expression nor"),
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.items(), ids=REFUSED)
def test_refused(text, problem):
    code, message = problem
    with pytest.raises(JobError) as caught:
        parse_create_table(text)
    assert caught.value.code.name == code
    assert message in caught.value.message
    assert caught.value.message.startswith("line 1, column ")
