"""Headers: columns are found by their names, or the file is an error."""

from __future__ import annotations

import pytest

from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.landing.csv_records import Dialect
from tests.landing.conftest import ReadCsv

DDL = "id INT, v STRING"


@pytest.mark.parametrize("header", ["v,id", "V,Id", "v , ID ", '"V","ID"', '" v",id'])
def test_columns_are_found_by_name_in_any_order_and_case(read_csv: ReadCsv, header: str) -> None:
    assert read_csv(f"{header}\na,1\nb,2\n", DDL).rows == [(1, "a"), (2, "b")]


def test_columns_that_nobody_wants_are_ignored_and_named(read_csv: ReadCsv) -> None:
    found = read_csv("x,V,y,id\n?,a,?,1\n", DDL)

    assert found.rows == [(1, "a")]
    assert found.seen == {"x", "V", "y", "id"}


def test_a_column_that_nobody_wants_may_stand_there_twice(read_csv: ReadCsv) -> None:
    assert read_csv("x,id,x,v\n?,1,?,a\n", DDL).rows == [(1, "a")]


@pytest.mark.parametrize("header", ["id,w", "id", "id;v", "id,v2", "iv,d"])
def test_a_header_that_lacks_a_column_is_an_error(read_csv: ReadCsv, header: str) -> None:
    error = _error(read_csv, f"\n\n{header}\n1,a\n")

    assert "landed.csv, line 3: the header has no column" in error.message
    assert header.split(",", maxsplit=1)[0] in error.message


def test_a_file_without_its_header_is_an_error(read_csv: ReadCsv) -> None:
    error = _error(read_csv, "1,a\n2,b\n")

    assert "line 1: the header has no column id; it says '1, a'" in error.message
    assert "'header': False" in error.remedy


@pytest.mark.parametrize("header", ["id,v,v", "id,v,V", 'id,v," v"'])
def test_a_wanted_column_that_stands_there_twice_is_an_error(
    read_csv: ReadCsv, header: str
) -> None:
    assert "names twice the column v" in _error(read_csv, f"{header}\n1,a,b\n").message


@pytest.mark.parametrize("header", ['id,"v', 'id,"v"x'])
def test_a_header_with_damaged_quotes_is_an_error(read_csv: ReadCsv, header: str) -> None:
    assert "landed.csv: the header has" in _error(read_csv, f"{header}\n1,a\n").message


def test_a_header_with_blanks_names_the_options(read_csv: ReadCsv) -> None:
    error = _error(read_csv, 'id, "v"\n1, "a"\n')

    assert "has no column v" in error.message
    assert "ignoreLeadingWhiteSpace=True" in error.remedy


def test_a_name_may_have_a_line_break(read_csv: ReadCsv) -> None:
    found = read_csv('"x\ny",id,v\n?,1,a\n?,x,b\n', DDL)

    assert found.rows == [(1, "a")]
    assert found.bad[0].location.line == 4


def test_names_are_utf_8(read_csv: ReadCsv) -> None:
    assert read_csv("ÄÖ,v\n1,a\n", "äö INT, v STRING").rows == [(1, "a")]


def test_other_names_may_be_of_any_bytes(read_csv: ReadCsv) -> None:
    assert read_csv(b"\xe4,id,v\n?,1,a\n", DDL).rows == [(1, "a")]


@pytest.mark.parametrize("data", ["", "\n", "\r\n\r\n", "\ufeff", "id,v", "id,v\n", "id,v\n\n\n"])
def test_a_file_without_records_has_no_rows(read_csv: ReadCsv, data: str) -> None:
    found = read_csv(data, DDL)

    assert found.rows == []
    assert found.bad == []
    assert found.records == 0


def test_by_position_the_names_are_not_looked_at(read_csv: ReadCsv) -> None:
    found = read_csv("a,b\n1,x\n", DDL, by_position=True)

    assert found.rows == [(1, "x")]
    assert found.seen == set()


def test_by_position_a_record_has_exactly_the_wanted_columns(read_csv: ReadCsv) -> None:
    found = read_csv("a,b,c\n1,x,y\n2,z\n", DDL, by_position=True)

    assert found.rows == [(2, "z")]
    assert found.reasons == [(2, "has 3 fields where the source's schema has 2")]


def test_a_header_that_is_not_told_names_the_option(read_csv: ReadCsv) -> None:
    (bad,) = read_csv("v,ID\na,1\n", "v STRING, id INT", has_header=False).bad
    assert bad.problem.value == "ID"
    assert bad.problem.remedy.endswith("say so by options={'header': True}.")


def test_without_a_header_the_first_record_is_a_row(read_csv: ReadCsv) -> None:
    found = read_csv("1,a\n2,b\nid,v\n", DDL, has_header=False)

    assert found.rows == [(1, "a"), (2, "b")]
    assert [bad.location.line for bad in found.bad] == [3]


def test_without_wanted_columns_records_are_counted(read_csv: ReadCsv) -> None:
    found = read_csv('id,v\n1,a\n2,"b\nc"\n\n3\n', "id INT", leniency="drop")
    assert found.values == [1, 2]

    found = read_csv('id,v\n1,a\n2,"b\nc"\n\n3\n', "")

    assert found.records == 3
    assert len(found.rows) == 2


def test_a_separator_of_the_header_is_the_dialect_s(read_csv: ReadCsv) -> None:
    assert read_csv("id\tv\n1\ta,b\n", DDL, dialect=Dialect(separator=b"\t")).rows == [(1, "a,b")]


def _error(read_csv: ReadCsv, data: str) -> CatalogError:
    with pytest.raises(CatalogError) as raised:
        read_csv(data, DDL)
    assert raised.value.code == ErrorCode.SOURCE_UNREADABLE
    return raised.value
