"""Characters that tell fields apart: each has one role."""

from __future__ import annotations

import pytest

from spark_jobs.errors import NotSupportedError
from spark_jobs.landing.csv_records import Dialect
from tests.landing.conftest import ReadCsv


@pytest.mark.parametrize("separator", [b";", b"\t", b"|", b" ", b"\0", b"\x01", b"a", b"."])
def test_any_other_character_separates(read_csv: ReadCsv, separator: bytes) -> None:
    dialect = Dialect(separator=separator)
    data = b'id,v\n1,x\n2,","\n3,\n'.replace(b",", separator)

    found = read_csv(data, "id INT, v STRING", dialect=dialect)

    assert found.rows == [(1, "x"), (2, separator.decode()), (3, None)]


@pytest.mark.parametrize("quote", [b"'", b"\0", b"|", b"q"])
def test_any_other_character_quotes(read_csv: ReadCsv, quote: bytes) -> None:
    dialect = Dialect(quote=quote, escape=quote)
    data = b'id,v\n1,"x,\n"\n2,""\n3,"""x"\n'.replace(b'"', quote)

    found = read_csv(data, "id INT, v STRING", dialect=dialect)

    assert found.rows == [(1, "x,\n"), (2, ""), (3, f"{quote.decode()}x")]


@pytest.mark.parametrize(
    "marks",
    [
        {"separator": b'"'},
        {"separator": b"\\", "escape": b"\\"},
        {"separator": b"#", "comment": b"#"},
        {"comment": b'"'},
        {"comment": b"\\", "escape": b"\\"},
        {"separator": b"\n"},
        {"quote": b"\r", "escape": b"\r"},
        {"comment": b"\n"},
        {"separator": b""},
    ],
)
def test_one_character_in_two_roles_is_refused(marks: dict[str, bytes]) -> None:
    with pytest.raises(NotSupportedError, match="fields cannot be told apart by sep"):
        Dialect(**marks)  # type: ignore[arg-type]


def test_without_quotes_an_escape_is_nothing(read_csv: ReadCsv) -> None:
    dialect = Dialect(quote=b"", escape=b"\\")

    assert read_csv("v\na\\b\n", "v STRING", dialect=dialect).values == ["a\\b"]
