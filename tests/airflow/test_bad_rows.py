"""What operators say of bad rows: as parameters, and in what comes back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_merge.operators._shared.results import asset_extra, result_table
from airflow_provider_merge.operators._shared.source_parameters import to_sources
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source, sql_source
from spark_jobs.contract.request import FileSource
from spark_jobs.contract.result import Metrics, SourceMetrics
from spark_jobs.errors import RequestError
from tests.airflow.support import PASSWORD, DagFile, FakeSubmitter, committed, example_request
from tests.airflow.test_assets import asset_events
from tests.airflow.test_bad_parameters import GOOD, ResultOfAnotherTask

ASKED: dict[str, Any] = {"on_bad_rows": "quarantine", "quarantine": "/bad"}


def csv(path: str = "/landing", **fields: Any) -> dict[str, Any]:
    return file_source(path, "csv", **fields)


def test_what_is_left_out_is_not_in_the_dict() -> None:
    assert set(csv()) == {"kind", "path", "format"}
    assert set(csv(**ASKED)) - set(csv()) == {"on_bad_rows", "quarantine"}


@pytest.mark.parametrize(("limit", "found"), [("0.01", 0.01), ("500", 500.0), (7, 7.0), (0.5, 0.5)])
def test_a_limit_as_number_or_text(limit: str | int | float, found: float) -> None:
    (source,) = to_sources(csv(**ASKED, max_bad_rows=limit))
    assert (source.max_bad_rows, type(source.max_bad_rows)) == (found, float)


@pytest.mark.parametrize("name", ["on_bad_rows", "quarantine"])
def test_what_rendered_as_nothing_is_an_error(name: str) -> None:
    with pytest.raises(RequestError, match=rf"source\.{name}: is empty"):
        to_sources(csv(**{name: ""}))


def test_written_by_hand() -> None:
    written = {"kind": "file", "path": "/landing", "format": "json", **ASKED, "max_bad_rows": "3"}
    (source,) = to_sources(written)
    assert source == FileSource("merge_source", "/landing", "json", {}, None, *ASKED.values(), 3.0)  # type: ignore[call-arg]


WRONG = {
    "treatment": (csv(on_bad_rows="skip"), r"on_bad_rows: 'skip' is not one of: fail, quarantine"),
    "treatment no text": (csv(on_bad_rows=True), "on_bad_rows: expected text, found bool"),
    "no folder": (csv(on_bad_rows="quarantine"), " quarantine: is missing"),
    "folder alone": (csv(quarantine="/bad"), " quarantine: is given, but"),
    "folder no text": (csv(on_bad_rows="quarantine", quarantine=["/bad"]), "quarantine: expected"),
    "relative folder": (csv(on_bad_rows="quarantine", quarantine="bad"), " quarantine: 'bad' is"),
    "folder that is read": (
        csv(on_bad_rows="quarantine", quarantine="/landing/bad"),
        " quarantine: '/landing/bad' lies in what the source reads, '/landing'",
    ),
    "limit alone": (csv(max_bad_rows=3), " max_bad_rows: is given, but"),
    "limit no number": (csv(**ASKED, max_bad_rows="few"), "max_bad_rows: 'few' is not a number"),
    "limit a flag": (csv(**ASKED, max_bad_rows=True), "max_bad_rows: True is not a number"),
    "limit infinite": (csv(**ASKED, max_bad_rows="inf"), "max_bad_rows: 'inf' is not a number"),
    "limit of no record": (csv(**ASKED, max_bad_rows=0), " max_bad_rows: 0.0 is neither"),
    "half a record": (csv(**ASKED, max_bad_rows="1.5"), " max_bad_rows: 1.5 is neither"),
    "parquet": (file_source("/x", "parquet", **ASKED), " on_bad_rows: files of the format"),
    "mode": (csv(options={"mode": "PERMISSIVE"}, **ASKED), " options.mode: 'PERMISSIVE' accepts"),
    "beside templates": (
        csv("/landing/{{ ds }}", on_bad_rows="quarantin", quarantine="/bad/{{ ds }}"),
        "on_bad_rows: 'quarantin' is not one of",
    ),
    "limit beside a template": (
        csv(on_bad_rows="quarantine", quarantine="/bad/{{ ds }}", max_bad_rows=2.5),
        " max_bad_rows: 2.5 is neither",
    ),
    "query": ({**sql_source("SELECT 1", sources={}), **ASKED}, "on_bad_rows: unknown field"),
}


@pytest.mark.parametrize(("source", "problem"), WRONG.values(), ids=WRONG)
def test_found_at_parse(source: dict[str, Any], problem: str) -> None:
    with pytest.raises(
        RequestError, match=rf"^REQUEST_INVALID: task '[a-z]+': source[.:]{problem}"
    ):
        MergeIntoOperator(**{**GOOD, "source": source})


def test_a_named_source_is_named() -> None:
    source = sql_source("SELECT * FROM a", sources={"a": csv(quarantine="/bad")})
    with pytest.raises(RequestError, match=r"source\.sources\.a: quarantine: is given"):
        MergeIntoOperator(**{**GOOD, "source": source})


def test_a_secret_is_refused_and_not_repeated() -> None:
    folder = f"s3://user:{PASSWORD}@landing/bad"
    with pytest.raises(RequestError, match=r"source\.quarantine: holds a secret") as raised:
        to_sources(csv("s3://landing", on_bad_rows="quarantine", quarantine=folder))
    assert PASSWORD not in str(raised.value)


LATER = {
    "path": csv("{{ params.x }}", **ASKED),
    "folder": csv(on_bad_rows="quarantine", quarantine="{{ params.x }}/bad"),
    "limit": csv(**ASKED, max_bad_rows="{{ params.x }}"),
    "limit of another task": csv(**ASKED, max_bad_rows=ResultOfAnotherTask()),
    "treatment": csv(on_bad_rows="{{ params.x }}", quarantine="{{ params.x }}", max_bad_rows=3),
    "treatment alone": csv(on_bad_rows="{{ params.x }}"),
    "format": file_source("/landing", "{{ params.x }}", **ASKED),
    "mode": csv(options={"Mode": "{{ params.x }}"}, **ASKED),
    "options": csv(options=ResultOfAnotherTask(), **ASKED),
}


@pytest.mark.parametrize("source", LATER.values(), ids=LATER)
def test_templates_are_known_later(source: dict[str, Any]) -> None:
    MergeIntoOperator(**{**GOOD, "source": source})
    MergeIntoOperator(**{**GOOD, "source": sql_source("SELECT * FROM a", sources={"a": source})})


FILE = "/bad/dag/run/merge/orders.jsonl"
READ = SourceMetrics(2, 12_345, 1_000, 3, 4, 5, FILE)
CLEAN = SourceMetrics(files=1, bytes=10, records=1)


def test_the_log_tells_what_was_read_and_what_was_not_stored() -> None:
    metrics = Metrics(sources={"orders": READ, "items": CLEAN})
    lines = result_table(committed(example_request(), metrics=metrics)).splitlines()
    assert [line for line in lines if line.startswith(("  source orders", "  source items"))] == [
        "  source orders: files 2 | bytes 12,345 | records 1,000",
        f"  source orders, not stored: lost values 3 | lost records 4 | quarantined 5, in {FILE}",
        "  source items: files 1 | bytes 10 | records 1",
    ]


def test_the_event_of_a_statement_without_files_has_no_sources() -> None:
    assert "sources" not in asset_extra("merge", committed(example_request()))


MERGE = """
MergeIntoOperator(
    task_id="merge",
    target="shop.orders",
    source=file_source("/landing/{{ params.day }}", "csv", on_bad_rows="quarantine",
                       quarantine="/bad/{{ params.day }}", max_bad_rows="{{ params.share }}"),
    on="t.id = s.id",
    when=[when_matched().update_all()],
)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_through_a_run(dag_file: Callable[..., DagFile], submitter: FakeSubmitter) -> None:
    metrics = Metrics(updated=2, sources={"merge_source": READ})
    submitter.outcomes = [functools.partial(committed, metrics=metrics)]
    run = dag_file(MERGE, arguments="params={'day': '2024-05-06', 'share': '0.01'}").run()

    (source,) = submitter.request.sources
    assert (source.quarantine, source.max_bad_rows) == ("/bad/2024-05-06", 0.01)
    (ti,) = run.get_task_instances()
    told = {
        "files": 2,
        "bytes": 12_345,
        "records": 1_000,
        "lost_values": 3,
        "lost_records": 4,
        "quarantined": 5,
        "quarantine": FILE,
        "left_files": 0,
        "left_bytes": 0,
        "skipped_events": 0,
    }
    assert ti.xcom_pull(task_ids="merge")["metrics"]["sources"] == {"merge_source": told}
    (event,) = asset_events(run)
    assert event.extra["sources"] == {"merge_source": told}
