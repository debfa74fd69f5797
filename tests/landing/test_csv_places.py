"""Where bad records are: their lines and their numbers, from 1."""

from __future__ import annotations

import pytest

from spark_jobs.landing.csv_records import Dialect
from tests.landing.conftest import ReadCsv

DDL = "id INT, v STRING"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_bad_records_are_found_by_line_and_number(read_csv: ReadCsv, end: str) -> None:
    lines = ["", "id,v", "1,a", "x,b", "", '2,"c', 'd"', "y,e", '3,"f"g', "4", "5,h", '"z",""', ""]

    found = read_csv(end.join(lines), DDL)

    places = [(bad.location.line, bad.location.record, bad.text) for bad in found.bad]
    assert places == [
        (4, 2, "x,b"),
        (8, 4, "y,e"),
        (9, 5, '3,"f"g'),
        (10, 6, "4"),
        (12, 8, '"z",""'),
    ]
    assert found.rows == [(1, "a"), (2, f"c{end}d"), (5, "h")]
    assert found.records == 8


def test_bad_records_of_regular_blocks_are_found(read_csv: ReadCsv) -> None:
    data = 'id,v\n1,"a\n\nb"\n\n2,"c,""d"\nx,"e\nf"\n\n\n3,\ny,g\n'

    found = read_csv(data, DDL)

    places = [(bad.location.line, bad.location.record, bad.text) for bad in found.bad]
    assert places == [(7, 3, 'x,"e\nf"'), (12, 5, "y,g")]


def test_a_bad_value_is_told_with_its_column(read_csv: ReadCsv) -> None:
    found = read_csv("id,n,day\n1,2,2024-02-30\nx,y,2024-02-01\n", "day DATE, id INT, n INT")

    problems = [bad.problem for bad in found.bad]
    assert [(p.column, p.value, p.expected) for p in problems] == [
        ("day", "2024-02-30", "DATE"),
        ("id", "x", "INT"),
    ]
    assert "dateFormat" in problems[0].remedy


@pytest.mark.parametrize(
    ("ddl", "text", "reason"),
    [
        ("v DOUBLE", "1e999", "is not a valid DOUBLE: it is too large"),
        (
            "v DECIMAL(6,2)",
            "1.005",
            "is not a valid DECIMAL(6,2): it has more digits than the type",
        ),
        ("v DATE", "2024-02-30", "is not a valid DATE: day is out of range for month"),
        (
            "v TIMESTAMP",
            "2024-01-01 00:00:00.0000001",
            "is not a valid TIMESTAMP: it has parts of a micro",
        ),
        ("v BOOLEAN", "maybe", "is not a valid BOOLEAN"),
    ],
)
def test_the_reason_says_what_is_wrong(read_csv: ReadCsv, ddl: str, text: str, reason: str) -> None:
    found = read_csv(f"v\n{text}\n", ddl)

    assert found.bad[0].problem.reason.startswith(reason)


def test_comments_and_blank_lines_count_as_lines(read_csv: ReadCsv) -> None:
    data = '#\n\nid,v\n#x\n1,a\n\n#y\n#\nx,b\n2,"c"d\n#z\n#z\n3,d\ny,\n'

    found = read_csv(data, DDL, dialect=Dialect(comment=b"#"))

    places = [(bad.location.line, bad.location.record) for bad in found.bad]
    assert places == [(9, 2), (10, 3), (14, 5)]
