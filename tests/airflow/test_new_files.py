"""What operators say of sources of new files: as parameters, and in what comes back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.checks.files import require_files
from airflow_provider_merge.operators._shared.results import result_table
from airflow_provider_merge.operators._shared.source_parameters import to_sources
from airflow_provider_merge.operators.clauses import when_not_matched_by_source
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import new_files_source, sql_source
from airflow_provider_merge.templates import PLACEHOLDER
from spark_jobs.contract.new_files import NewFiles
from spark_jobs.contract.request import FileSource
from spark_jobs.contract.result import Metrics, SourceMetrics
from spark_jobs.errors import CatalogError, JobError, RequestError
from tests.airflow.support import committed, example_request
from tests.airflow.test_bad_parameters import GOOD


def new(**fields: Any) -> dict[str, Any]:
    return new_files_source("/landing", "csv", **{"start": "all", **fields})


def found(written: dict[str, Any]) -> FileSource:
    (source,) = to_sources(written)
    assert isinstance(source, FileSource)
    return source


def test_the_files_are_those_of_a_file_source() -> None:
    written = new(options={"header": True}, schema="id BIGINT", max_files="10", max_bytes=1_000)
    options = {"header": "true"}
    limits = NewFiles("all", "fail", 10, 1_000)
    assert found(written) == FileSource(
        "merge_source", "/landing", "csv", options, "id BIGINT", new_files=limits
    )
    assert set(new()) == {"kind", "path", "format", "start"}


@pytest.mark.parametrize(
    "start", ["now", "2026-01-31T00:00:00+01:00", datetime(2026, 1, 31, tzinfo=UTC)]
)
def test_starts(start: Any) -> None:
    limits = found(new(start=start, replaced="again")).new_files
    assert limits == NewFiles(start if isinstance(start, str) else start.isoformat(), "again")


def test_templates() -> None:
    fields = dict.fromkeys(("start", "replaced", "max_files", "max_bytes"), PLACEHOLDER)
    assert found(new(**fields)).new_files == NewFiles("all")


WRONG = {
    "no start": ({"kind": "new_files", "path": "/a", "format": "csv"}, "source.start: is missing"),
    "start of another kind": (new(start="yesterday"), "source.start: 'yesterday' is neither"),
    "no zone": (new(start="2026-01-31T00:00:00"), "source.start: .* is a time without a zone"),
    "naive": (new(start=datetime(2026, 1, 31)), "source.start: .* is a time without a zone"),  # noqa: DTZ001
    "number": (new(start=1), "source.start: expected text, found int"),
    "policy": (new(replaced="ignore"), "source.replaced: 'ignore' is not one of: fail, again"),
    "none at all": (new(max_files=0), "source.max_files: 0 is not a positive whole number"),
    "size": (new(max_bytes="1 GB"), "source.max_bytes: '1 GB' is not a positive whole number"),
    "unknown": ({**new(), "limit": 1}, "source.limit: unknown field"),
    "xml": (new_files_source("/a", "xml", start="all"), "format 'xml' are not read one by one"),
}


@pytest.mark.parametrize(("written", "says"), WRONG.values(), ids=WRONG)
def test_bad_input_is_refused_when_the_dag_is_parsed(written: dict[str, Any], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        to_sources(written)
    with pytest.raises(JobError, match=says):
        MergeIntoOperator(**{**GOOD, "source": written})


def test_two_such_sources_and_overwrites_are_refused_by_name() -> None:
    two = sql_source("SELECT * FROM a JOIN b USING (id)", sources={"a": new(), "b": new()})
    with pytest.raises(JobError, match=r"NOT_SUPPORTED.*source b: a statement has one such source"):
        MergeIntoOperator(**{**GOOD, "source": two})
    with pytest.raises(JobError, match=r"NOT_SUPPORTED.*insert_overwrite does not remember"):
        InsertOverwriteOperator(task_id="t", target="shop.orders", source=new(), mode="table")
    when = [*GOOD["when"], when_not_matched_by_source().delete()]
    with pytest.raises(JobError, match="WHEN NOT MATCHED BY SOURCE would change all rows"):
        MergeIntoOperator(**{**GOOD, "source": new(), "when": when})


def test_branches_are_refused_because_marks_are_not_published() -> None:
    with pytest.raises(JobError, match="is not published with the branch audit"):
        MergeIntoOperator(**{**GOOD, "source": new(), "target": "shop.orders$branch_audit"})


def test_an_empty_folder_may_have_nothing_new_but_must_be_there(tmp_path: Path) -> None:
    require_files(found({**new(), "path": str(tmp_path)}), "s")
    with pytest.raises(CatalogError, match="there is no file or folder"):
        require_files(found({**new(), "path": str(tmp_path / "typo")}), "s")


def test_the_log_says_what_is_left() -> None:
    read = {"s": SourceMetrics(files=2, bytes=20, records=4, left_files=3, left_bytes=30)}
    result = committed(example_request(), metrics=Metrics(sources=read))
    assert "files 2 | bytes 20 | records 4 | left files 3 | left bytes 30" in result_table(result)
