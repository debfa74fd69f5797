"""Parquet and ORC files whose columns, fields or types differ from what is read of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from tests.conformance.harness import Harness
from tests.engine.landed import Landing, new_landing

X = pa.struct([("x", pa.int64())])
XY = pa.struct([("x", pa.int64()), ("y", pa.int64())])
STRUCT, BOTH = {"x": 1}, {"x": 1, "y": 2}
# The column of the files a and b: the second one has the field y.
NESTED = {
    "struct": (pa.array([STRUCT], X), pa.array([BOTH], XY), "s.y"),
    "list": (pa.array([[STRUCT]], pa.list_(X)), pa.array([[BOTH]], pa.list_(XY)), "s.element.y"),
    "map": (
        pa.array([[("k", STRUCT)]], pa.map_(pa.string(), X)),
        pa.array([[("k", BOTH)]], pa.map_(pa.string(), XY)),
        "s.value.y",
    ),
}


@pytest.fixture
def landing(make_table: Callable[..., Harness], tmp_path: Path) -> Landing:
    landing = new_landing(make_table, tmp_path)
    landing.folder.mkdir()
    return landing


def write(landing: Landing, name: str, **columns: Any) -> None:
    path, table = landing.folder / name, pa.table(columns)
    if path.suffix == ".orc":
        orc.write_table(table, path)
    else:
        pq.write_table(table, path)


def problem(landing: Landing, format_: str, code: str = "SOURCE_UNREADABLE", **more: Any) -> str:
    """The message of the error, of a statement that stores nothing."""
    result = landing.insert(str(landing.folder), format_, **more)
    assert result.error is not None
    assert result.error.code == code, result.error
    assert landing.rows("id") == []
    assert "missing or damaged" not in result.error.message
    return result.error.message


@pytest.mark.parametrize("format_", ["parquet", "orc"])
@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("later", [True, False], ids=["later", "earlier"])
def test_a_field_that_one_file_has(
    landing: Landing, format_: str, kind: str, *, later: bool
) -> None:
    less, more, path = NESTED[kind]
    first, second = (less, more) if later else (more, less)
    write(landing, f"a.{format_}", id=[1], s=first)
    write(landing, f"b.{format_}", id=[2], s=second)

    message = problem(landing, format_, query="SELECT id, to_json(s) AS v FROM files")

    assert f"column {path}" in message
    assert f".{format_} has " in message


def test_fields_of_all_files_where_merge_schema_asks_for_them(landing: Landing) -> None:
    less, more, _ = NESTED["list"]
    write(landing, "a.parquet", id=[1], s=less)
    write(landing, "b.parquet", id=[2], s=more)

    result = landing.insert(
        str(landing.folder),
        "parquet",
        {"mergeSchema": "true"},
        query="SELECT id, CAST(s[0].y AS STRING) AS v FROM files",
    )

    assert result.error is None, result.error
    assert landing.rows("id", "v") == [(1, None), (2, "2")]


def test_fields_that_the_schema_does_not_name_are_not_read(landing: Landing) -> None:
    _, more, _ = NESTED["struct"]
    write(landing, "a.parquet", id=[1], s=more)

    result = landing.insert(
        str(landing.folder),
        "parquet",
        schema="id BIGINT, s STRUCT<X: BIGINT>",
        query="SELECT id, to_json(s) AS v FROM files",
    )

    assert result.error is None, result.error
    assert landing.rows("id", "v") == [(1, '{"X":1}')]


def test_fields_that_differ_in_case(landing: Landing) -> None:
    write(landing, "a.parquet", id=[1], s=pa.array([[{"x": 1}]]))
    write(landing, "b.parquet", id=[2], s=pa.array([[{"X": 2}]]))

    result = landing.insert(
        str(landing.folder), "parquet", query="SELECT id, CAST(s[0].x AS STRING) AS v FROM files"
    )

    assert result.error is None, result.error
    assert landing.rows("id", "v") == [(1, "1"), (2, "2")]


def test_names_that_differ_only_in_case(landing: Landing) -> None:
    write(landing, "a.parquet", id=[1], v=["x"])
    write(landing, "b.parquet", id=[2], v=["x"], V=["y"])

    assert "b.parquet has two columns v" in problem(landing, "parquet")


DECIMAL = pa.array([Decimal("12345678.25")], pa.decimal128(10, 2))
# The column in the file, what the schema says of it, and what the file holds.
REFUSED = {
    "upper bits": (pa.array([1000], pa.int32()), "TINYINT", "INT"),
    "too long": (pa.array([2**40]), "INT", "BIGINT"),
    "number": (pa.array([1], pa.int32()), "DATE", "INT"),
    "text": (pa.array([1]), "STRING", "BIGINT"),
    "digits": (DECIMAL, "DECIMAL(5,2)", "DECIMAL(10,2)"),
    "fraction": (DECIMAL, "DECIMAL(10,1)", "DECIMAL(10,2)"),
    "no digits left": (DECIMAL, "DECIMAL(10,3)", "DECIMAL(10,2)"),
    "seconds": (pa.array([1]), "TIMESTAMP", "BIGINT"),
    "struct": (pa.array([STRUCT], X), "BIGINT", "STRUCT"),
    "no struct": (pa.array([1]), "STRUCT<x: BIGINT>", "BIGINT"),
    "field": (pa.array([{"x": 2**40}], X), "STRUCT<x: INT>", "BIGINT"),
    "truth": (pa.array([1]), "BOOLEAN", "BIGINT"),
}


@pytest.mark.parametrize("format_", ["parquet", "orc"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_type_that_does_not_hold_the_files_values(
    landing: Landing, format_: str, name: str
) -> None:
    values, declared, held = REFUSED[name]
    write(landing, f"a.{format_}", id=[1], c=values)

    query = "SELECT id, CAST(to_json(struct(c)) AS STRING) AS v FROM files"
    message = problem(landing, format_, schema=f"id BIGINT, c {declared}", query=query)

    assert f"a.{format_}" in message
    assert f"holds {held}" in message or "has no column c.x" in message


def test_a_local_time_is_no_instant(landing: Landing) -> None:
    write(landing, "a.parquet", id=[1], t=pa.array([1], pa.timestamp("us")))

    message = problem(landing, "parquet", schema="id BIGINT, t TIMESTAMP")

    assert "column t holds TIMESTAMP_NTZ where TIMESTAMP is expected" in message


# The column in the file, what the schema says of it, and the value.
WIDER = {
    "small": (pa.array([7], pa.int8()), "INT", "7"),
    "unsigned": (pa.array([2**32 - 1], pa.uint32()), "BIGINT", "4294967295"),
    "bytes": (pa.array(["é"]), "BINARY", "é"),
    "text": (pa.array([b"x"]), "STRING", "x"),
    "dictionary": (pa.array(["x"]).dictionary_encode(), "STRING", "x"),
    "all NULL": (pa.nulls(1), "INT", None),
}
WIDER_SINCE_4 = {
    "INT": (pa.array([7], pa.int32()), "BIGINT", "7"),
    "FLOAT": (pa.array([0.5], pa.float32()), "DOUBLE", "0.5"),
    "decimal": (DECIMAL, "DECIMAL(12,3)", "12345678.250"),
    "number": (pa.array([7], pa.int32()), "DECIMAL(12,2)", "7.00"),
    "day": (pa.array([1], pa.date32()), "TIMESTAMP_NTZ", "1970-01-02 00:00:00"),
}


@pytest.mark.parametrize("name", [*WIDER, *WIDER_SINCE_4])
def test_a_wider_type(landing: Landing, name: str) -> None:
    values, declared, expected = {**WIDER, **WIDER_SINCE_4}[name]
    write(landing, "a.parquet", id=[1], c=values)

    schema = f"id BIGINT, c {declared}"
    query = "SELECT id, CAST(c AS STRING) AS v FROM files"
    result = landing.insert(str(landing.folder), "parquet", schema=schema, query=query)

    if name in WIDER_SINCE_4 and landing.harness.spark.version < "4":
        assert result.error is not None
        assert "where" in result.error.message or "Column: [c]" in result.error.message
    else:
        assert result.error is None, result.error
        assert landing.rows("v") == [(expected,)]


@pytest.mark.parametrize("format_", ["parquet", "orc"])
@pytest.mark.parametrize("merges", [True, False], ids=["merged", "not merged"])
def test_numbers_of_two_lengths_in_one_folder(
    landing: Landing, format_: str, *, merges: bool
) -> None:
    """Spark takes the types of any of the files."""
    write(landing, f"a.{format_}", id=pa.array([1], pa.int32()), v=["x"])
    write(landing, f"b.{format_}", id=[2**40], v=["y"])
    options = {"mergeSchema": "true"} if merges else {}

    result = landing.insert(str(landing.folder), format_, options)

    if result.error is None:
        assert not merges
        assert landing.rows("id") == [(1,), (2**40,)]
    else:
        assert result.error.code == "SOURCE_UNREADABLE"
        message = result.error.message
        assert f".{format_} column id holds BIGINT where INT is expected" in message
        assert landing.rows("id") == []
        declared = landing.insert(
            str(landing.folder),
            format_,
            schema="id BIGINT, v STRING",
            operation_id="operation-2",
        )
        if landing.harness.spark.version >= "4" or format_ == "orc":
            assert declared.error is None, declared.error
            assert landing.rows("id") == [(1,), (2**40,)]


@pytest.mark.parametrize(
    ("values", "held"),
    [
        (pa.array([1], pa.time64("us")), "another type"),
        (pa.array([Decimal(10) ** 50], pa.decimal256(60, 2)), "DECIMAL(60,2)"),
    ],
)
def test_a_type_that_spark_does_not_have(landing: Landing, values: pa.Array, held: str) -> None:
    write(landing, "a.parquet", id=[1], c=values)

    message = problem(landing, "parquet", "NOT_SUPPORTED")

    assert f"a.parquet: column c holds {held}" in message


def test_a_file_without_columns(landing: Landing) -> None:
    write(landing, "a.parquet")

    assert "a.parquet has no columns" in problem(landing, "parquet")


UTC = pa.timestamp("ns", "UTC")
LOCAL = pa.timestamp("ns")
NANOS = 1_704_448_800_000_001_000
MOMENT = dt.datetime(2024, 1, 5, 10, 0, 0, 1, tzinfo=dt.UTC)


def test_nanoseconds_that_are_whole_microseconds(landing: Landing) -> None:
    write(
        landing,
        "a.parquet",
        id=[1, 2, 3],
        t=pa.array([NANOS, -1_000, None], UTC),
        local=pa.array([NANOS, -1_000, None], LOCAL),
        nested=pa.array([{"l": [-1_000]}, {"l": None}, None], pa.struct([("l", pa.list_(LOCAL))])),
    )
    query = (
        "SELECT id, t, concat_ws(' ', CAST(local AS STRING), CAST(nested.l[0] AS STRING)) AS v,"
        " typeof(nested) AS p FROM files"
    )

    result = landing.insert(str(landing.folder), "parquet", query=query, zone="America/New_York")

    assert result.error is None, result.error
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)
    kind = "struct<l:array<timestamp_ntz>>"
    assert landing.rows("t", "v", "p") == [
        (MOMENT, "2024-01-05 10:00:00.000001 1969-12-31 23:59:59.999999", kind),
        (before, "1969-12-31 23:59:59.999999", kind),
        (None, "", kind),
    ]


def test_nanoseconds_that_are_declared(landing: Landing) -> None:
    write(landing, "a.parquet", id=[1], t=pa.array([NANOS], UTC), n=pa.array([NANOS + 1], LOCAL))
    schema = "id BIGINT, t TIMESTAMP, n BIGINT"
    query = "SELECT id, t, CAST(n AS STRING) AS v FROM files"

    result = landing.insert(str(landing.folder), "parquet", schema=schema, query=query)

    assert result.error is None, result.error
    assert landing.rows("t", "v") == [(MOMENT, str(NANOS + 1))]


def test_parts_of_a_microsecond(landing: Landing) -> None:
    write(landing, "a.parquet", id=[1, 2], t=pa.array([NANOS, NANOS + 1], UTC))

    message = problem(landing, "parquet", "VALUE_NOT_STORABLE")

    assert "column t of row 2 of " in message
    assert f"a.parquet: {NANOS + 1} nanoseconds after 1970" in message
    again = landing.insert(
        str(landing.folder),
        "parquet",
        query="SELECT id FROM files",
        operation_id="operation-2",
    )
    assert again.error is None, again.error
    assert landing.rows("id") == [(1,), (2,)]


def test_units_that_differ(landing: Landing) -> None:
    write(landing, "a.parquet", id=[1], t=pa.array([NANOS], UTC))
    write(landing, "b.parquet", id=[2], t=pa.array([NANOS // 1_000], pa.timestamp("us", "UTC")))

    message = problem(landing, "parquet")

    assert "b.parquet column t holds TIMESTAMP where TIMESTAMP in nanoseconds is" in message


def test_an_instant_in_an_orc_file(landing: Landing) -> None:
    write(landing, "a.orc", id=[1], t=pa.array([1], pa.timestamp("us", "UTC")))

    for schema in (None, "id BIGINT"):
        message = problem(landing, "orc", "NOT_SUPPORTED", schema=schema)
        assert "a.orc: column t is a TIMESTAMP WITH LOCAL TIME ZONE" in message


@pytest.mark.parametrize("times", [[-1_500_000], [-1]])
def test_an_old_time_in_an_orc_file_of_pyarrow(landing: Landing, times: list[int]) -> None:
    write(landing, "a.orc", id=[1], t=pa.array(times, pa.timestamp("us")))

    assert "a.orc: column t has times before 1970" in problem(landing, "orc", "NOT_SUPPORTED")
    result = landing.insert(
        str(landing.folder), "orc", query="SELECT id FROM files", operation_id="operation-2"
    )
    assert result.error is None, result.error
