"""Care for all tables of catalogs: the plan from metadata, one job, results, retries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pytest

from airflow_provider_merge.care.steps import Step, document_of, steps_in
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.metadata.paimon.table import PaimonTable
from airflow_provider_merge.operators.lakehouse_care import lakehouse_care
from spark_jobs.contract.compaction import CompactionReport, CompactSpec
from spark_jobs.contract.maintenance import (
    ExpireSnapshotsSpec,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
)
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import ErrorInfo, JobResult, Metrics
from spark_jobs.errors import ErrorCode, InternalError, JobError, RequestError
from tests.airflow.cared_tables import Tries, table, told
from tests.airflow.support import DagFile, FakeSubmitter, committed, failed
from tests.support.iceberg_tables import IcebergTable

BROKEN = ErrorInfo("METADATA_UNREADABLE", "a manifest is gone", "Look.", retryable=False)
REFUSED = ErrorInfo("NOT_SUPPORTED", "not this one", "Use Spark.", retryable=False)
CONFLICT = ErrorInfo("COMMIT_CONFLICT", "somebody was there", "", retryable=True)
LATE = ErrorInfo("TIME_LIMIT_REACHED", "not begun", "", retryable=True)


@pytest.fixture
def lake(warehouse: Path) -> Path:
    """Tables with and without something to do, one that is broken, a folder that is no table."""
    table(warehouse, "small", files=6)
    table(warehouse, "many", files=20)
    table(warehouse, "old", files=15, old=15, **{"compaction.min.file-num": "50"})
    table(warehouse, "calm")
    options: dict[str, Any] = {"data-evolution.enabled": "true"}
    table(warehouse, "evolving", files=6, **options)
    broken = table(warehouse, "broken", files=6)
    for each in (broken.folder / "manifest").iterdir():
        each.unlink()
    (warehouse / "shop.db" / "none").mkdir()
    return warehouse


def reported(request: JobRequest) -> JobResult:
    """The result of a job."""
    common = {"metrics": Metrics(), "new_snapshot_id": None}
    if isinstance(request.statement, CompactSpec):
        report = CompactionReport(bytes_before=600, bytes_after=500, files_before=6, files_after=1)
        return committed(request, compaction=report, **common)
    return committed(
        request, maintenance=MaintenanceReport(snapshots=4, bytes_removed=70), **common
    )


def requests(submitter: FakeSubmitter, job: int = 0) -> list[tuple[str, str]]:
    return [(each.statement.kind, str(each.target)) for each in submitter.jobs[job].work.requests]


PLANNED = {
    "compact shop.many": "planned",
    "compact shop.small": "planned",
    "compact shop.evolving": "refused",
    "compact shop.broken": "failed",
    "expire_snapshots shop.old": "planned",
    "shop.calm": "nothing",
}


def test_a_dry_run_is_a_plan_from_metadata(lake: Path, submitter: FakeSubmitter) -> None:
    result = Tries().run(dry_run=True)

    assert told(result) == PLANNED
    assert submitter.jobs == []
    assert result["status"] == "dry_run"
    many, small = (
        next(each for each in result["tables"] if each["table"] == f"shop.{name}")
        for name in ("many", "small")
    )
    assert (many["read"], many["write"], many["files"]) == (2000, 2000, 19)
    assert (small["read"], small["files"]) == (600, 5)
    assert result["read"] == 2600
    old = next(each for each in result["tables"] if each["table"] == "shop.old")
    assert (old["snapshots"], old["catalog"]) == (5, "paimon_default")
    names = [each["table"] for each in result["tables"]]
    assert names.index("shop.many") < names.index("shop.small") < names.index("shop.calm")
    broken = next(each for each in result["tables"] if each["table"] == "shop.broken")
    assert broken["code"] == "METADATA_UNREADABLE"
    assert not (lake / "_operations").exists()


def test_a_plan_of_both_formats(
    warehouse: Path, iceberg_catalog: Any, submitter: FakeSubmitter
) -> None:
    table(warehouse, "small", files=6)
    other = IcebergTable.create(iceberg_catalog, ("shop", "days"))
    for _ in range(6):
        other.append(20_000, "Oslo")
    IcebergTable.create(iceberg_catalog, ("shop", "empty"))

    tries = Tries()
    submitter.outcomes = [reported]
    result = tries.run(tables="shop.*", more_catalogs=["iceberg_default"])

    found = {(each["catalog"], each["table"]): each for each in result["tables"]}
    assert {name: each["status"] for name, each in found.items()} == {
        ("paimon_default", "shop.small"): "done",
        ("iceberg_default", "shop.days"): "done",
        ("iceberg_default", "shop.empty"): "nothing",
    }
    (job,) = submitter.jobs
    assert {each.catalog.connector for each in job.work.requests} == {"paimon", "iceberg"}
    assert len({each.operation_id for each in job.work.requests}) == 2
    (secret,) = job.credentials
    paimon = next(each for each in job.work.requests if each.catalog.connector == "paimon")
    own = job.work.credentials_of(paimon.catalog, job.credentials)
    assert list(own) == ["custom.secret-key"]
    assert secret.endswith(".custom.secret-key")


def test_what_is_done_by_whom(lake: Path, submitter: FakeSubmitter) -> None:
    submitter.outcomes = [reported]
    tries = Tries()
    with pytest.raises(Exception, match=r"1 of 6 steps .*\n.*METADATA_UNREADABLE") as raised:
        tries.run()

    assert type(raised.value).__name__ == "FinalFailure"
    assert "Done, and not repeated by a retry: 3." in str(raised.value)
    (job,) = submitter.jobs
    assert requests(submitter) == [
        *(("compact", "shop.many"), ("compact", "shop.small"), ("expire_snapshots", "shop.old"))
    ]
    assert (job.work.on_failure, job.work.max_parallel, job.work.max_seconds) == (
        *("continue", 1), None
    )  # fmt: skip
    result = tries.pushed["return_value"]
    done = {name: "done" if each == "planned" else each for name, each in PLANNED.items()}
    assert told(result) == done
    small = next(each for each in result["tables"] if each["table"] == "shop.small")
    assert (small["read"], small["write"], small["free"], small["files"]) == (600, 500, 100, 5)
    assert result["counts"] == {"done": 3, "nothing": 1, "refused": 1, "failed": 1}


def test_a_failure_may_be_a_warning(lake: Path, submitter: FakeSubmitter) -> None:
    submitter.outcomes = [reported]
    result = Tries().run(on_failure="warn", exclude=["*.many"])

    assert told(result)["compact shop.broken"] == "failed"
    assert "compact shop.many" not in told(result)
    # Nobody asks for it any more.
    assert list((lake / "_operations").glob("*.plan")) == []


def test_bytes_are_cut_by_what_is_worth_most(lake: Path, submitter: FakeSubmitter) -> None:
    submitter.outcomes = [reported]
    cut = Tries().run(dry_run=True, max_bytes="2100 b")
    assert told(cut)["compact shop.many"] == "planned"
    assert told(cut)["compact shop.small"] == "left"
    assert cut["read"] == 2000

    capped = Tries().run(dry_run=True, max_bytes="1000 b")
    assert told(capped)["compact shop.many"] == "planned"
    assert capped["read"] == 1000
    Tries().run(max_bytes="1000 b", on_failure="warn", max_seconds=60, max_parallel="3")
    work = submitter.jobs[0].work
    assert work.requests[0].statement == CompactSpec(max_bytes="1000 b")
    assert (work.max_seconds, work.max_parallel) == (60, 3)


def test_actions_are_chosen(lake: Path, submitter: FakeSubmitter) -> None:
    submitter.outcomes = [reported]
    chosen: dict[str, Any] = {
        "actions": ["remove_orphan_files", "expire_snapshots"],
        "tables": ["shop.old"],
    }
    result = Tries().run(**chosen, older_than="3 h", orphans_older_than="2 d", retain_min=3)

    statements = [each.statement for each in submitter.jobs[0].work.requests]
    assert statements == [
        ExpireSnapshotsSpec(older_than="3 h", retain_min=3), RemoveOrphanFilesSpec("2 d")
    ]  # fmt: skip
    expiry = result["tables"][0]
    assert (expiry["free"], expiry["snapshots"]) == (70, 4)


def test_nothing_to_do_starts_nothing(warehouse: Path, submitter: FakeSubmitter) -> None:
    table(warehouse, "calm")
    assert told(Tries().run()) == {"shop.calm": "nothing"}
    assert Tries().run(exclude="shop.*")["tables"] == []
    assert submitter.jobs == []


def test_an_empty_catalog_has_nothing(warehouse: Path, submitter: FakeSubmitter) -> None:
    assert Tries().run()["tables"] == []


def by_table(**outcomes: Any) -> Callable[[JobRequest], JobResult | None]:
    """Results by the table's name; others are done, and None leaves none."""

    def outcome(request: JobRequest) -> JobResult | None:
        error = outcomes.get(request.table.table, reported)
        if error is None or error is reported:
            return None if error is None else reported(request)
        return failed(request, error)

    return outcome


def test_a_refusal_by_the_job_and_want_of_time_are_no_failures(
    lake: Path, submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [by_table(many=REFUSED, small=LATE)]
    result = Tries().run(exclude="*.broken")

    assert told(result)["compact shop.many"] == "refused"
    assert told(result)["compact shop.small"] == "left"
    many = next(each for each in result["tables"] if each["table"] == "shop.many")
    assert (many["code"], many["reason"]) == ("NOT_SUPPORTED", "not this one")


def test_a_retry_does_what_is_left(lake: Path, submitter: FakeSubmitter) -> None:
    submitter.outcomes = [by_table(small=CONFLICT)]
    tries = Tries()
    with pytest.raises(Exception, match="COMMIT_CONFLICT: somebody was there") as raised:
        tries.run(exclude="*.broken")
    assert type(raised.value).__name__ == "PassingFailure"

    # What is to be done is that of the first try, whatever happens to tables meanwhile.
    table(lake, "late", files=9)
    submitter.outcomes = [reported]
    result = tries.run(2, exclude="*.broken")

    assert requests(submitter, 1) == [("compact", "shop.small")]
    first = {each.target: each for each in submitter.jobs[0].work.requests}
    (again,) = submitter.jobs[1].work.requests
    assert again.operation_id == first[again.target].operation_id
    assert again.origin.try_number == 2
    assert told(result)["compact shop.many"] == told(result)["compact shop.small"] == "done"
    assert "compact shop.late" not in told(result)
    assert list((lake / "_operations").glob("*.plan")) == []


def test_a_retry_after_a_kill_does_the_rest(lake: Path, submitter: FakeSubmitter) -> None:
    submitter.outcomes = [by_table(small=None, old=None)]
    submitter.process_fails = True
    tries = Tries()
    with pytest.raises(Exception, match=r"No result: compact paimon_default shop\.small") as raised:
        tries.run(exclude="*.broken", on_failure="warn")
    assert type(raised.value).__name__ == "PassingFailure"
    assert told(tries.pushed["return_value"])["compact shop.small"] == "planned"

    submitter.process_fails, submitter.outcomes = False, [reported]
    tries.run(2, exclude="*.broken")
    assert requests(submitter, 1) == [("compact", "shop.small"), ("expire_snapshots", "shop.old")]


def test_a_retry_of_what_is_done_starts_nothing(lake: Path, submitter: FakeSubmitter) -> None:
    submitter.outcomes = [reported]
    tries = Tries()
    with pytest.raises(Exception, match="METADATA_UNREADABLE"):
        tries.run()
    with pytest.raises(Exception, match="METADATA_UNREADABLE"):
        tries.run(2)
    assert len(submitter.jobs) == 1


def test_what_could_not_be_planned_is_no_reason_to_try_again(
    lake: Path, submitter: FakeSubmitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer(hook: PaimonHook, name: TableName) -> PaimonTable:
        if str(name) == "shop.small":
            raise InternalError(ErrorCode.STORAGE_UNAVAILABLE, "no answer", "Look.")
        return read(hook, name)

    read = PaimonHook.table
    monkeypatch.setattr(PaimonHook, "table", no_answer)
    submitter.outcomes = [reported]
    with pytest.raises(Exception, match="STORAGE_UNAVAILABLE: no answer") as raised:
        Tries().run(exclude="*.broken")
    assert type(raised.value).__name__ == "FinalFailure"


def test_what_nobody_expects_is_an_error_of_its_table(
    lake: Path, submitter: FakeSubmitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PaimonHook, "page_facts", lambda *_: {}["x"])
    found = Tries().run(dry_run=True, tables="shop.calm")["tables"]
    assert [(each["status"], each["code"]) for each in found] == [("failed", "INTERNAL_ERROR")]


def test_an_approved_plan_is_done_as_far_as_it_still_holds(
    lake: Path, submitter: FakeSubmitter
) -> None:
    plan = Tries().run(dry_run=True, exclude="*.broken")
    # Meanwhile, one table is gone, another was compacted, a third has work that nobody approved.
    (lake / "shop.db" / "many").rename(lake / "shop.db" / ".gone")
    (lake / "shop.db" / "small").rename(lake / "shop.db" / ".small")
    table(lake, "small")
    table(lake, "late", files=9)
    submitter.outcomes = [reported]

    for given in (plan, json.dumps(plan)):
        submitter.jobs.clear()
        result = Tries().run(plan=given)
        assert told(result) == {
            "expire_snapshots shop.old": "done",
            "compact shop.many": "gone",
            "compact shop.small": "nothing",
        }
        (request,) = submitter.jobs[0].work.requests
        assert request.statement == ExpireSnapshotsSpec(max_deletes=5)
        for each in (lake / "_operations").iterdir():
            each.unlink()


def test_a_folder_that_nobody_may_write_is_the_job_s_to_tell(
    lake: Path, submitter: FakeSubmitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_merge.operators._shared import rights

    monkeypatch.setattr(rights, "_published_folders", lambda *_: pytest.fail("was looked at"))
    submitter.outcomes = [reported]
    Tries().run(on_failure="warn")
    submitter.jobs[0].require_rights()


def test_steps_come_back_from_their_document() -> None:
    steps = [
        Step("lake", "a.b", "compact", read=5, write=4, free=1, files=3),
        Step("lake", "a.b", "remove_orphan_files", free=None),
        Step("lake", "`a.c`.b", status="failed", code="METADATA_UNREADABLE", reason="Oh."),
    ]
    document = document_of(steps, "dry_run")
    assert steps_in(document, "plan") == steps_in(json.dumps(document), "plan") == steps
    assert isinstance(steps[2].error, JobError)
    with pytest.raises(RequestError, match="twice"):
        steps_in({"tables": [document["tables"][0]] * 2}, "plan")


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_db")
def test_the_plan_of_one_task_is_done_by_another(
    lake: Path, submitter: FakeSubmitter, dag_file: Callable[..., DagFile]
) -> None:
    submitter.outcomes = [reported]
    body = """
        from airflow_provider_merge.operators.table_care import TableCareOperator
        plan = TableCareOperator(task_id="plan", tables="shop.old", dry_run=True)
        care = TableCareOperator(task_id="care", plan=plan.output)
        care >> TableCareOperator(task_id="again", plan="{{ ti.xcom_pull('plan') | tojson }}")
    """
    run = dag_file(body).run()

    assert run.state == "success"
    statements = [each.statement for job in submitter.jobs for each in job.work.requests]
    assert statements == [ExpireSnapshotsSpec(max_deletes=5)] * 2
    results = {
        each.task_id: each.xcom_pull(task_ids=each.task_id) for each in run.get_task_instances()
    }
    assert [results[name]["status"] for name in ("plan", "care", "again")] == [
        *("dry_run", "done", "done")
    ]


def test_the_group_asks_before_it_starts_anything(lake: Path, submitter: FakeSubmitter) -> None:
    from airflow.sdk import DAG

    with DAG("care", schedule=None) as dag:
        lakehouse_care(tables="shop.*", older_than="3 h", retries=0)
    order = [each.task_id.removeprefix("lakehouse_care.") for each in dag.topological_sort()]
    assert order == ["plan", "is_anything_due", "approval", "care"]
    plan, care = (dag.task_dict[f"lakehouse_care.{name}"] for name in ("plan", "care"))
    assert (plan.dry_run, plan.tables, care.dry_run, care.tables) == (True, "shop.*", False, None)
    assert plan.older_than == care.older_than == "3 h"

    found = Tries().run(dry_run=True)
    is_anything_due = dag.task_dict["lakehouse_care.is_anything_due"].python_callable
    nothing = document_of([Step("c", "a.b", status="nothing")], "dry_run")
    assert [is_anything_due(each) for each in (found, nothing)] == [True, False]
    asked = {}

    class Pulled:
        def xcom_pull(self, task_ids: str) -> dict[str, Any]:
            asked["of"] = task_ids
            return found

    body = dag.task_dict["lakehouse_care.approval"].body
    text = jinja2.Template(body, undefined=jinja2.StrictUndefined).render(ti=Pulled())
    assert asked == {"of": "lakehouse_care.plan"}
    assert text.startswith("Bytes to read: 2,600, to write: 2,600,")
    assert "- shop.many of paimon_default: compact planned,\n  2,000 bytes to read" in text
    assert "- shop.broken of paimon_default: compact failed," in text
    assert "shop.calm" not in text
