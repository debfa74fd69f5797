"""VERSION AS OF and TIMESTAMP AS OF in the texts of statements and queries."""

from __future__ import annotations

import pytest

from airflow_provider_merge.sql.parser import parse_query, parse_statement
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.errors import JobError

NUMBER = TableVersion(version="7")
TIME = TableVersion(as_of="2024-01-31 06:00:00")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("VERSION AS OF 7", NUMBER),
        ("version as of '7'", NUMBER),
        ("FOR VERSION AS OF 7", NUMBER),
        ("FOR SYSTEM_VERSION AS OF 7", NUMBER),
        ('SYSTEM_VERSION AS OF "kept"', TableVersion(version="kept")),
        ("TIMESTAMP AS OF '2024-01-31 06:00:00'", TIME),
        ("FOR TIMESTAMP AS OF TIMESTAMP '2024-01-31 06:00:00'", TIME),
        ("FOR SYSTEM_TIME AS OF '2024-01-31 06:00:00'", TIME),
        ("TIMESTAMP AS OF DATE'2024-01-31'", TableVersion(as_of="2024-01-31")),
    ],
)
@pytest.mark.parametrize("alias", ["", " x", " AS x", " TABLESAMPLE (5 ROWS)"])
def test_in_a_query(text, at, alias):
    name, (table, query) = parse_query(f"SELECT * FROM a.b {text}{alias} WHERE c > 1")
    assert (table.name, table.at) == ("a__b", at)
    known = f"a__b{alias}" if "x" in alias else f"a__b{alias} AS b"
    assert query.query == f"SELECT * FROM {known} WHERE c > 1"
    assert name == query.name


def test_several_states_of_a_table_are_several_sources():
    text = "SELECT * FROM a.b VERSION AS OF 1 o JOIN a.b n ON o.id = n.id JOIN a.b VERSION AS OF 1"
    _, (old, new, query) = parse_query(text)
    assert [old.at, new.at] == [TableVersion(version="1"), None]
    assert query.query == "SELECT * FROM a__b o JOIN a__b_2 n ON o.id = n.id JOIN a__b AS b"


def test_of_the_source_of_a_merge():
    found = parse_statement(
        "MERGE INTO a.t USING a.b VERSION AS OF 7 s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    assert (found.statement.source_alias, found.sources[0].at) == ("s", NUMBER)


def test_words_that_are_no_state_are_aliases():
    _, (table, query) = parse_query("SELECT version.id FROM a.b version")
    assert table.at is None
    assert query.query == "SELECT version.id FROM a__b version"


@pytest.mark.parametrize("text", ["2024-13-01", "yesterday", "2024-01-01 25:00"])
def test_no_time(text):
    with pytest.raises(JobError, match="is not a time") as caught:
        parse_query(f"SELECT * FROM a.b TIMESTAMP AS OF '{text}'")
    assert caught.value.code.name == "REQUEST_INVALID"
    assert caught.value.remedy
