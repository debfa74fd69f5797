"""Types of Spark SQL are known by name, without Spark."""

from __future__ import annotations

import pytest

from spark_jobs.contract.spark_types import parse_type, require_known_types
from spark_jobs.contract.statements import ColumnSpec
from spark_jobs.errors import RequestError

KNOWN = (
    "BIGINT",
    "varchar(10)",
    "DECIMAL",
    "dec(3)",
    "decimal(10, 2)",
    "TIMESTAMP_NTZ",
    "ARRAY<MAP<STRING, STRUCT<`a b`: INT NOT NULL COMMENT 'x\\'y', c: DATE>>>",
)
REFUSED = {
    "INTT": "Did you mean INT?",
    "strin": "Did you mean STRING?",
    "ARRAY<INTT>": "Did you mean INT?",
    "aray<INT>": "Did you mean ARRAY?",
    "VARCHAR": "Write VARCHAR(10), or STRING.",
    "DECIMAL(1, 2, 3)": "Write DECIMAL(10, 2).",
    "INT(11)": "Write INT alone.",
    "TIMESTAMP(3)": "Write TIMESTAMP for an instant, or TIMESTAMP_NTZ for a local time.",
    "TIMESTAMP WITH LOCAL TIME ZONE": "Write TIMESTAMP for an instant, or TIMESTAMP_NTZ",
    "ARRAY<INT": "Write a type such as BIGINT, DECIMAL(10, 2) or ARRAY<STRING>.",
    **dict.fromkeys(
        ("", "array", "map<int>", "struct<>", "struct<a>", "int int", "decimal(a)", "a.b"),
        "Write a type such as BIGINT, DECIMAL(10, 2) or ARRAY<STRING>.",
    ),
}


@pytest.mark.parametrize("text", KNOWN)
def test_known(text: str) -> None:
    assert parse_type(text).name == text.partition("<")[0].partition("(")[0].lower()


@pytest.mark.parametrize(("text", "remedy"), REFUSED.items(), ids=REFUSED)
def test_refused(text: str, remedy: str) -> None:
    with pytest.raises(RequestError) as raised:
        parse_type(text)

    assert raised.value.message == f"{text!r} is not a type of Spark SQL"
    assert raised.value.remedy.startswith(remedy)


def test_a_column_is_named() -> None:
    with pytest.raises(RequestError, match="type: of column id: 'INTT' is not a type of Spark SQL"):
        ColumnSpec("id", "INTT")


@pytest.mark.parametrize(
    ("schema", "problem", "remedy"),
    [
        ("id STRNG", "STRNG is not a type", "Did you mean STRING?"),
        ("a INT NOT NULL COMMENT 'x', b: ARRAY<dat>", "DAT is not a type", "Did you mean DATE?"),
        ("a INT, b blob", "BLOB is not a type", "Write a type such as BIGINT"),
    ],
)
def test_a_list_of_columns_with_a_type_that_there_is_not(
    schema: str, problem: str, remedy: str
) -> None:
    with pytest.raises(RequestError) as raised:
        require_known_types(schema)

    assert raised.value.message.startswith(f"schema: {problem}")
    assert raised.value.remedy.startswith(remedy)


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "id BIGINT, `a b` STRUCT<c: DECIMAL(3, 1), d INT> NOT NULL COMMENT 'strng strng'",
        "to_be.rendered",
        "STRUCT<a: INT>",
        "a STRING COLLATE UNICODE",
        "a INTERVAL DAY TO SECOND",
        "not a list, of columns, with-marks",
    ],
)
def test_what_a_list_of_columns_is_otherwise_spark_tells(schema: str) -> None:
    require_known_types(schema)
