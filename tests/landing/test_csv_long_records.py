"""Long fields, and records that are longer than the source allows."""

from __future__ import annotations

import pytest

from spark_jobs.landing import blocks
from spark_jobs.landing.blocks import RecordTooLongError
from spark_jobs.landing.csv_records import Dialect
from tests.landing.conftest import ReadCsv

DDL = "id INT, v STRING"


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_field_of_5_mb_is_read(
    read_csv: ReadCsv, quote: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "tiny blocks" in way:
        monkeypatch.setattr(blocks, "BLOCK_BYTES", 1000)
    text = "0123456789" * 500_000

    found = read_csv(f"id,v\n1,a\n2,{quote}{text}{quote}\n3,b\n", DDL)

    assert found.rows == [(1, "a"), (2, text), (3, "b")]


@pytest.mark.parametrize("last", ["\n", "\r\n", "", "\n4,b\n"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_record_may_have_as_many_bytes_as_the_source_allows(
    read_csv: ReadCsv, quote: str, last: str
) -> None:
    record = f"2,{quote}{'a' * (98 - 2 * len(quote))}{quote}"
    assert len(record) == 100

    found = read_csv(f"id,v\n1,a\n{record}{last}", DDL, max_record_bytes=100)

    assert found.rows[1][0] == 2
    with pytest.raises(RecordTooLongError, match="line 3"):
        read_csv(f"id,v\n1,a\n{record}{last}", DDL, max_record_bytes=99)


def test_a_quote_that_is_never_closed_ends_at_the_limit(read_csv: ReadCsv) -> None:
    data = 'id,v\n1,"a\n' + "2,b\n" * 100

    with pytest.raises(RecordTooLongError, match="line"):
        read_csv(data, DDL, max_record_bytes=100)


def test_a_header_ends_at_the_limit(read_csv: ReadCsv) -> None:
    data = '"id,v\n' + "2,b\n" * 100

    with pytest.raises(RecordTooLongError, match="line"):
        read_csv(data, DDL, max_record_bytes=100)


def test_blank_lines_and_comments_are_no_long_record(read_csv: ReadCsv) -> None:
    filling = "\n" * 300 + "#\n" * 300 + "\r\n" * 300
    data = f"{filling}id,v\n{filling}1,a\n{filling}"

    found = read_csv(data, DDL, max_record_bytes=50, dialect=Dialect(comment=b"#"))

    assert found.rows == [(1, "a")]
