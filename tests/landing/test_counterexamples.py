"""Files and texts that were once read wrong, by name."""

from __future__ import annotations

from typing import Any

import pytest

from spark_jobs.landing.csv_records import Dialect
from tests.landing.conftest import ReadCsv
from tests.landing.reading import REFUSED, value

TWO = "v STRING, w STRING"
BAD = "bad"
# Data, columns, dialect, and the records in their order.
CSV: dict[str, tuple[str, str, Dialect, list[Any]]] = {
    "the last field of a file is empty behind quotes": (
        '"a",b\n"c",',
        TWO,
        Dialect(),
        [("a", "b"), ("c", None)],
    ),
    "a block begins with a byte order mark": (
        "a,b\n\ufeffc,d\n",
        TWO,
        Dialect(),
        [("a", "b"), ("\ufeffc", "d")],
    ),
    "a quote is doubled where the escape is another": (
        'a,"b""c"\nd,e\n',
        TWO,
        Dialect(escape=b"\\"),
        [BAD, ("d", "e")],
    ),
    "nothing is an escape": (
        'a,"b\\"\n"c","d"\n',
        TWO,
        Dialect(escape=b""),
        [("a", "b\\"), ("c", "d")],
    ),
    "a line break is in quotes behind damage": (
        '"a"b,"c\nd,e"\nf,g\n',
        TWO,
        Dialect(),
        [BAD, ("f", "g")],
    ),
    "blanks are trimmed between tabs": (
        "a\t\n\tb\n",
        TWO,
        Dialect(separator=b"\t", trim_left=True, trim_right=True),
        [("a", None), (None, "b")],
    ),
    "a carriage return ends a bad record, and the block": (
        'a,"b"c\r\nd,e\r\nf\r\n',
        TWO,
        Dialect(),
        [BAD, ("d", "e"), BAD],
    ),
}
TEXTS = [
    # Arrow calculates with 128 bits, whatever comes of it.
    ("34028236692093846346337460743176821145.7", "DECIMAL(5,2)"),
    ("3.87", "DECIMAL(38,38)"),
    # Arrow reads what lies behind its table of powers, and crashes.
    ("1e-999999999", "DECIMAL(6,2)"),
    # Python refuses to look at such an exponent.
    ("1e-9999999999999999999999", "DECIMAL(6,2)"),
    ("0000-01-01", "DATE"),
    ("0000-01-01 00:00:00", "TIMESTAMP"),
    ("0001-01-01T00:00:00+01:00", "TIMESTAMP"),
    ("2024-01-01T12", "TIMESTAMP"),
    ("2024-01-01T12:00:00+23:59", "TIMESTAMP"),
]


@pytest.mark.parametrize("name", CSV)
def test_csv(read_csv: ReadCsv, name: str) -> None:
    data, ddl, dialect, expected = CSV[name]

    found = read_csv(data, ddl, dialect=dialect, has_header=False)

    bad = {record.location.record for record in found.bad}
    rows = iter(found.rows)
    assert [BAD if i in bad else next(rows) for i in range(1, found.records + 1)] == expected


@pytest.mark.parametrize(("text", "type_name"), TEXTS)
def test_a_text_that_is_no_value(text: str, type_name: str) -> None:
    assert value(text, type_name) == REFUSED


def test_a_number_of_5000_digits() -> None:
    assert value("0" * 5000 + "7", "INT") == 7
