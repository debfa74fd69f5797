"""Spark's types and Paimon's, both ways; Spark's own parser is the judge of the grammar."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.connectors.paimon.format.types import (
    has_nanoseconds,
    is_nullable,
    to_paimon,
    to_spark,
)
from spark_jobs.engine.runtime.older_spark import parsed_type
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATOMIC = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "string": "STRING",
    "binary": "BYTES",
    "timestamp": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "timestamp_ntz": "TIMESTAMP(6)",
    "decimal(10,2)": "DECIMAL(10, 2)",
    "varchar(5)": "VARCHAR(5)",
    "char(3)": "CHAR(3)",
}


@pytest.mark.parametrize(("spark_type", "paimon"), ATOMIC.items())
def test_atomic_types_map_both_ways(spark_type: str, paimon: str) -> None:
    assert to_paimon(spark_type, "c", nullable=True) == paimon
    assert to_paimon(spark_type.upper(), "c", nullable=False) == f"{paimon} NOT NULL"
    assert to_spark(paimon, "c") == to_spark(f"{paimon} NOT NULL", "c") == spark_type


@pytest.mark.parametrize(
    ("paimon", "spark_type"),
    [
        ("INTEGER", "int"),
        ("DECIMAL", "decimal(10,0)"),
        ("DECIMAL(5)", "decimal(5,0)"),
        ("CHAR", "char(1)"),
        ("VARCHAR(2147483647)", "string"),
        ("VARBINARY(16)", "binary"),
        ("BINARY(3)", "binary"),
        ("TIMESTAMP_LTZ(3)", "timestamp"),
        ("TIMESTAMP(9)", "timestamp_ntz"),
        ("TIMESTAMP", "timestamp_ntz"),
    ],
)
def test_other_spellings_of_paimon_are_read(paimon: str, spark_type: str) -> None:
    assert to_spark(paimon, "c") == spark_type


@pytest.mark.parametrize(
    ("alias", "spark_type"),
    [
        ("LONG", "bigint"),
        ("short", "smallint"),
        ("byte", "tinyint"),
        ("real", "float"),
        ("integer", "int"),
        ("dec", "decimal(10,0)"),
        ("numeric(7)", "decimal(7,0)"),
        ("character(2)", "char(2)"),
        ("timestamp_ltz", "timestamp"),
    ],
)
def test_aliases_of_spark_are_read(alias: str, spark_type: str) -> None:
    assert to_spark(to_paimon(alias, "c", nullable=True), "c") == spark_type


def test_nested_types_keep_names_nullability_and_comments() -> None:
    text = "struct<a:int NOT NULL COMMENT 'it\\'s',`b c`:array<map<string,decimal(3,1)>>>"

    paimon = to_paimon(text, "c", nullable=True)

    assert paimon["fields"][0] == {
        "id": 0,
        "name": "a",
        "type": "INT NOT NULL",
        "description": "it's",
    }
    assert paimon["fields"][1]["type"]["element"]["key"] == "STRING NOT NULL"
    assert to_spark(paimon, "c") == text


@pytest.mark.parametrize("name", ["TIME(3)", "VARIANT", "BLOB", "ROWID"])
def test_types_that_spark_can_not_read_are_refused_with_the_column(name: str) -> None:
    with pytest.raises(NotSupportedError, match=r"Column a\.b is of Paimon's type"):
        to_spark({"type": "ROW", "fields": [{"id": 0, "name": "b", "type": name}]}, "a")


@pytest.mark.parametrize("name", ["MULTISET", "VECTOR"])
def test_nested_types_that_spark_can_not_read_are_refused(name: str) -> None:
    with pytest.raises(NotSupportedError, match=f"Paimon's type {name}"):
        to_spark({"type": name, "element": "INT"}, "a")


@pytest.mark.parametrize("text", ["interval", "variant", "void", "decimal(39,1)", "decimal(3,4)"])
def test_types_that_paimon_can_not_hold_are_refused_with_the_column(text: str) -> None:
    with pytest.raises(NotSupportedError, match=r"Column c\.element: a Paimon table cannot"):
        to_paimon(f"array<{text}>", "c", nullable=True)


def test_nullability_is_that_of_the_type_itself() -> None:
    assert is_nullable({"type": "ARRAY", "element": "INT NOT NULL"})
    assert not is_nullable({"type": "ROW NOT NULL", "fields": []})


def test_nanoseconds_are_found_inside_nested_types() -> None:
    row = {"type": "ROW", "fields": [{"id": 0, "name": "t", "type": "TIMESTAMP(9) NOT NULL"}]}

    assert has_nanoseconds({"type": "ARRAY", "element": row})
    assert not has_nanoseconds({"type": "MAP", "key": "INT", "value": "TIMESTAMP(6)"})


def spark_types() -> st.SearchStrategy[str]:
    atomic = st.sampled_from([t for t in ATOMIC if "char(" not in t])
    names = st.sampled_from(["a", "b_1", "`x y`", "`q``r`"])

    def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        field = st.tuples(names, inner, st.sampled_from(["", " NOT NULL", " COMMENT 'c'"]))
        fields = st.lists(field, min_size=1, max_size=3, unique_by=lambda f: f[0])
        return st.one_of(
            inner.map("array<{}>".format),
            st.tuples(atomic, inner).map(lambda kv: f"map<{kv[0]},{kv[1]}>"),
            fields.map(lambda fs: f"struct<{','.join(f'{n}:{t}{s}' for n, t, s in fs)}>"),
        )

    return st.recursive(atomic, nested, max_leaves=4)


@pytest.mark.slow
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=spark_types())
def test_spark_reads_the_type_we_print_as_the_one_we_were_given(
    spark: SparkSession, text: str
) -> None:
    printed = to_spark(to_paimon(text, "c", nullable=True), "c")

    assert schema_json(spark, printed) == schema_json(spark, text)


def schema_json(spark: SparkSession, text: str) -> Any:
    assert spark is not None
    return json.loads(parsed_type(f"c {text}").json())
