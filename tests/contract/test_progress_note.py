"""The note of a running statement: what it tells, and what it never tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_jobs.contract.operation_files import operation_of_running, running_path
from spark_jobs.contract.progress_note import ProgressNote, Share, ToldLines, catalog_mark
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, SqlSource, TableName
from spark_jobs.contract.statements import DeleteAction, MergeCase, MergeSpec
from spark_jobs.errors import RequestError

CATALOG = CatalogSpec("paimon", "/lake", {"planted.option": "planted-value"})
SPEC = MergeSpec("s", "t.planted = s.planted", (MergeCase("matched", DeleteAction()),), "t", "s")
REQUEST = JobRequest(
    "op-1",
    TableName("shop", "orders"),
    CATALOG,
    SPEC,
    (SqlSource("s", "SELECT 'planted' AS planted"),),
    origin=Origin("dag", "run", "task", 3, 2, statement="first"),
)
NOTE = ProgressNote.of(REQUEST, 1000.0, 1412.4, "write", Share(37, 200, 1_234_567))


def test_it_is_the_same_when_it_is_read() -> None:
    assert ProgressNote.from_json(NOTE.to_json()) == NOTE
    assert ProgressNote.from_json(NOTE.to_json() + "\n" * 32_768) == NOTE


def test_it_has_nothing_of_the_statement_and_no_option() -> None:
    assert "planted" not in NOTE.to_json()


def test_what_people_read() -> None:
    assert NOTE.text() == (
        "progress: write, for 412 seconds in all; 37 of 200 tasks of its stages (18 %); "
        "1,234,567 rows so far"
    )
    begun = replace(NOTE, phase="", share=Share())
    assert begun.text() == "progress: start, for 412 seconds in all"


@pytest.mark.parametrize("text", ["", "\n", "{}", "[]", "null", "{", NOTE.to_json()[:-2]])
def test_what_is_none(text: str) -> None:
    with pytest.raises((ValueError, RequestError)):
        ProgressNote.from_json(text)


@pytest.mark.parametrize("time", [float("nan"), float("inf"), -1.0, 1e12])
def test_a_time_that_is_none(time: float) -> None:
    with pytest.raises((ValueError, RequestError)):
        ProgressNote.from_json(replace(NOTE, began=time).to_json())


def test_connections_to_one_catalog_have_one_mark() -> None:
    mark = catalog_mark(CATALOG)

    assert catalog_mark(replace(CATALOG, workspace="/work")) == mark
    assert catalog_mark(replace(CATALOG, options={"planted.option": "other"})) != mark
    assert catalog_mark(replace(CATALOG, warehouse="/other")) != mark


def test_the_file_of_a_note_names_its_operation() -> None:
    name = running_path("op-1").rpartition("/")[2]

    assert operation_of_running(name) == "op-1"
    assert operation_of_running("op-1.json") is None


def test_a_line_for_each_ten_percents_and_each_phase() -> None:
    lines = ToldLines()
    told = [
        lines.wanted(replace(NOTE, phase=phase, share=Share(done, 100)))
        for phase, done in (("source", 0), ("source", 9), ("source", 10), ("write", 10))
    ]

    assert told == [True, False, True, True]
    # A stage of the same phase that begins.
    assert lines.wanted(replace(NOTE, phase="write", share=Share(0, 7)))
