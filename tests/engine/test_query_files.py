"""What a query writes to files is read as the same values: all types, at their edges."""

from __future__ import annotations

import random
import string
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.query import OutputFormat
from spark_jobs.contract.request import FileSource, JobRequest
from spark_jobs.run import run
from tests.engine.test_query import found, request, warehouse
from tests.support.turns import examples, part

__all__ = ["warehouse"]

ZONES: Final = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu")
# Values of each type, as SQL.
FLAT: Final[dict[str, tuple[str, ...]]] = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("-128Y", "127Y"),
    "SMALLINT": ("-32768S", "32767S"),
    "INT": ("-2147483648", "2147483647", "0"),
    "BIGINT": ("CAST(-9223372036854775808 AS BIGINT)", "9223372036854775807"),
    "FLOAT": (
        *("float('NaN')", "float('-Infinity')", "CAST('-0.0' AS FLOAT)", "CAST('0.1' AS FLOAT)"),
        *("CAST('1.4E-45' AS FLOAT)", "CAST('3.4028235E38' AS FLOAT)", "CAST('16777217' AS FLOAT)"),
    ),
    "DOUBLE": (
        *("double('NaN')", "double('Infinity')", "-0.0D", "0.1D", "4.9E-324D"),
        *("1.7976931348623157E308D", "9007199254740993D", "1E22D"),
    ),
    "DECIMAL(38,0)": (f"{'9' * 38}BD", f"-{'9' * 38}BD", "0BD"),
    "DECIMAL(38,38)": ("CAST('0." + "9" * 38 + "' AS DECIMAL(38,38))", "CAST(0 AS DECIMAL(38,38))"),
    "DECIMAL(5,2)": ("CAST(-999.99 AS DECIMAL(5,2))", "CAST(0 AS DECIMAL(5,2))"),
    "STRING": (
        *("''", "' '", "'NULL'", "'a,b'", r"'\"'", r"'a\"b'", "'é ж 漢 😀'", "char(0)", "char(9)"),
        *("concat('a', char(10), 'b')", "concat('a', char(13), char(10))", r"'\\'", "'Z'"),
        *("char(13)", "char(10)", "unhex('EFBBBF')::STRING", "'#x'", "'0'"),
    ),
    "BINARY": ("X''", "X'00'", "X'FF00FE'", "X'61'", "X'0A0D'", "X'22'"),
    "DATE": ("DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'1582-10-10'", "DATE'1970-01-01'"),
    "TIMESTAMP": (
        *("TIMESTAMP'0001-01-01 00:00:00Z'", "TIMESTAMP'9999-12-31 00:00:00.999999Z'"),
        *("TIMESTAMP'2024-10-27 00:30:00Z'", "TIMESTAMP'2024-10-27 01:30:00Z'"),
        *("TIMESTAMP'2024-11-03 05:30:00Z'", "TIMESTAMP'2024-11-03 06:30:00.000001Z'"),
        *("TIMESTAMP'1582-10-10 00:00:00Z'", "TIMESTAMP'1969-12-31 23:59:59.999999Z'"),
        *("TIMESTAMP'1883-11-18 17:00:00Z'", "TIMESTAMP'1900-01-01 00:00:00Z'"),
    ),
    "TIMESTAMP_NTZ": (
        *("TIMESTAMP_NTZ'0001-01-01 00:00:00'", "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"),
        *("TIMESTAMP_NTZ'2024-03-31 02:30:00'", "TIMESTAMP_NTZ'1969-12-31 23:59:59.000001'"),
    ),
}
NAMES: Final = ("a.b", "*", "c`d", "e,f", 'g"h', " i ", "j k", "_l", "ñ", "select", "m\nn", "1")


def random_kind(random_: random.Random, depth: int) -> tuple[str, str]:
    """A type, and the SQL of a value of it."""
    if depth and random_.random() < 0.5:
        kind, value = random_kind(random_, depth - 1)
        other, more = random_kind(random_, 0)
        return random_.choice(
            [
                (f"ARRAY<{kind}>", f"array({value}, CAST(NULL AS {kind}))"),
                (f"MAP<STRING, {kind}>", f"map('', {value}, 'k', NULL)"),
                (
                    f"STRUCT<`x.y`: {kind}, z: {other}>",
                    f"named_struct('x.y', {value}, 'z', {more})",
                ),
                (f"ARRAY<{kind}>", f"CAST(array() AS ARRAY<{kind}>)"),
            ]
        )
    kind = random_.choice([*FLAT])
    return kind, random_.choice([*FLAT[kind], f"CAST(NULL AS {kind})"])


def columns(seed: int, format_: OutputFormat) -> list[tuple[str, str, list[str]]]:
    """Columns of a query: name, type and values. The first one has the numbers of the rows."""
    random_ = random.Random(seed)
    rows = random_.randint(0, 6)
    names = random_.sample([*NAMES, *string.ascii_uppercase], random_.randint(1, 8))
    found = [("id", "INT", [str(number) for number in range(rows)])]
    for name in names:
        kind, value = random_kind(random_, 2 if format_ == "parquet" else 0)
        if kind in FLAT:
            choices = [*FLAT[kind], f"CAST(NULL AS {kind})"]
            found.append((name, kind, [random_.choice(choices) for _ in range(rows)]))
        else:
            found.append((name, kind, [value] * rows))
    return found


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def query_of(found: list[tuple[str, str, list[str]]]) -> str:
    lines = []
    for row in range(len(found[0][2])):
        values = ", ".join(
            f"CAST({values[row]} AS {kind}) AS {quoted(name)}" for name, kind, values in found
        )
        lines.append(f"SELECT {values}")
    if not lines:
        values = ", ".join(f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind, _ in found)
        lines.append(f"SELECT {values} WHERE false")
    return " UNION ALL ".join(lines)


def check_seed(
    spark: SparkSession, warehouse: Path, folder: Path, format_: OutputFormat, seed: int
) -> None:
    """Write a random query's rows, and compare what is read of the files with the query."""
    asked = columns(seed, format_)
    zone = ZONES[seed % len(ZONES)]
    query = query_of(asked)
    options = {"output_path": str(folder / f"{format_}-{seed}"), "output_format": format_}
    ordered = "SELECT * FROM ({}) ORDER BY id"
    job = in_zone(request(warehouse, query, **options), zone)
    written = found(run(job, spark))

    schema = ", ".join(f"{quoted(name)} {kind}" for name, kind, _ in asked)
    csv = {"header": "true", "binaryFormat": "base64"} if format_ == "csv" else {}
    files = FileSource("files", str(written.location), format_, csv, schema)
    back = request(warehouse, ordered.format("SELECT * FROM files"), [files])
    before = request(warehouse, ordered.format(query))
    assert (
        found(run(in_zone(back, zone), spark)).rows == found(run(in_zone(before, zone), spark)).rows
    ), f"seed {seed} as {format_} in {zone}: {query}"


def in_zone(job: JobRequest, zone: str) -> JobRequest:
    return replace(job, options=replace(job.options, session_time_zone=zone))


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_random_rows(
    spark: SparkSession, warehouse: Path, tmp_path: Path, format_: OutputFormat
) -> None:
    count = examples(18)
    for seed in range(part(3) * count, (part(3) + 1) * count):
        check_seed(spark, warehouse, tmp_path, format_, seed)


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_every_value_in_every_zone(
    spark: SparkSession, warehouse: Path, tmp_path: Path, format_: OutputFormat
) -> None:
    kinds = {kind: [*values, f"CAST(NULL AS {kind})"] for kind, values in FLAT.items()}
    longest = max(map(len, kinds.values()))
    names = [*NAMES, *string.ascii_uppercase][: len(kinds)]
    columns = ", ".join(map(quoted, ("id", *names)))
    rows = ", ".join(
        f"({number}, {', '.join(values[number % len(values)] for values in kinds.values())})"
        for number in range(longest)
    )
    query = f"SELECT * FROM VALUES {rows} AS t({columns})"
    schema = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(names, kinds, strict=True))
    csv = {"header": "true", "binaryFormat": "base64"} if format_ == "csv" else {}
    for number, zone in enumerate(ZONES):
        output = {"output_path": str(tmp_path / str(number)), "output_format": format_}
        written = found(run(in_zone(request(warehouse, query, **output), zone), spark))
        files = FileSource("files", str(written.location), format_, csv, f"id INT, {schema}")
        # EXCEPT takes NaN for NaN and -0.0 for 0.0; the text tells these apart.
        texts = ", ".join(f"CAST({quoted(name)} AS STRING)" for name in names[5:7])
        compared = (
            f"SELECT *, {texts} FROM files EXCEPT ALL SELECT *, {texts} FROM ({query})",
            f"SELECT *, {texts} FROM ({query}) EXCEPT ALL SELECT *, {texts} FROM files",
        )
        for each in compared:
            report = found(run(in_zone(request(warehouse, each, [files]), zone), spark))
            assert report.rows == (), (zone, report.rows)


def test_a_null_in_the_only_column_of_a_csv_file(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    output = {"output_path": str(tmp_path / "out"), "output_format": "csv"}
    error = run(request(warehouse, "SELECT nullif(id, 1) AS n FROM orders", **output), spark).error

    assert error is not None
    assert error.code == "VALUE_NOT_STORABLE"
    assert "csv has no place for NULL in n" in error.message


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_text_that_is_not_utf8(
    spark: SparkSession, warehouse: Path, tmp_path: Path, format_: OutputFormat
) -> None:
    output = {"output_path": str(tmp_path / "out"), "output_format": format_}
    query = "SELECT 1 AS id, CAST(X'61ff' AS STRING) AS v"
    error = run(request(warehouse, query, **output), spark).error

    assert error is not None
    assert error.code == "VALUE_NOT_STORABLE"
    assert "output_path: column v" in error.message
