"""The undo of a run: which tables it finds, what it asks for, results; the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.__main__ import main
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.operators._shared.run_tables import WantedTables, tables_of_run
from airflow_provider_merge.operators.undo_run import UndoRunOperator
from airflow_provider_merge.undo import command
from spark_jobs.contract import properties
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.contract.undo import TableUndo, UndoneCommit, UndoReport, UndoRunSpec
from spark_jobs.contract.undone import undone_properties
from spark_jobs.errors import RequestError
from tests.airflow.cared_tables import Tries
from tests.airflow.parameter_values import TICKET
from tests.airflow.support import FakeSubmitter, committed, store
from tests.support.paimon_metadata import TableFiles

DONE = TableUndo(
    "shop.one",
    "undone",
    (UndoneCommit(2, 1_767_225_600_000, "a", "merge", "t", inserted=3, deleted=1),),
    inserted=3,
    deleted=1,
    files_removed=1,
    files_restored=2,
    snapshot_id=4,
)
REFUSED = TableUndo("shop.two", "refused", code="COMMITS_OF_OTHERS", reason="somebody built on it")


def made_by(dag_id: str, run_id: str, operation_id: str) -> dict[str, str]:
    return {
        properties.OPERATION_ID: operation_id,
        properties.DAG_ID: dag_id,
        properties.RUN_ID: run_id,
        properties.TASK_ID: "t",
    }


def table(warehouse: Path, name: str, *runs: tuple[str, str]) -> TableFiles:
    """A table with a commit of each run, behind one of another engine."""
    found = TableFiles(warehouse, name).create()
    found.add({"2026-01-31": 10})
    for number, (dag_id, run_id) in enumerate(runs):
        told = made_by(dag_id, run_id, f"{name}-{number}")
        found.add({"2026-01-31": 10}, properties=told)
    return found


@pytest.fixture
def lake(warehouse: Path) -> Path:
    """Two tables with commits of the run ``r``, others without, and a folder that is no table."""
    table(warehouse, "one", ("d", "r"), ("d", "other"))
    table(warehouse, "two", ("other", "r"), ("d", "r"))
    table(warehouse, "three", ("other", "r"), ("d", "other"))
    (warehouse / "shop.db" / "none").mkdir()
    return warehouse


def reported(request: JobRequest) -> JobResult:
    status: Any = "dry_run" if request.dry_run else "committed"
    report = UndoReport((DONE, REFUSED))
    return committed(request, status=status, metrics=Metrics(), new_snapshot_id=None, undo=report)


class Undos(Tries):
    """Tries of a task that undoes a run."""

    def run(self, number: int = 1, **parameters: Any) -> dict[str, Any]:
        self.operator = UndoRunOperator(
            task_id="t", retries=1, undo_dag_id="d", undo_run_id="r", **parameters
        )
        return self.tried(self.operator, number)


def test_the_tables_of_a_run_are_found(lake: Path) -> None:
    hook = PaimonHook("paimon_default")

    def found(tables: Any = None, run: str = "r") -> list[str]:
        return sorted(
            map(str, tables_of_run(hook, "d", run, WantedTables.of("tables", tables)).names)
        )

    assert found() == ["shop.one", "shop.two"]
    assert found("shop.two") == ["shop.two"]
    assert found(["*.t*"]) == ["shop.two"]
    assert found(run="none") == []
    with pytest.raises(RequestError, match=r"tables: 'shop.four' fits no table"):
        found("shop.four")


def test_who_built_on_the_run(lake: Path) -> None:
    # The second reads what table two had before the run.
    for number, read in ((2, {"shop.one": 2}), (3, {"shop.two": 2})):
        path = lake / f"shop.db/three/snapshot/snapshot-{number}"
        document = json.loads(path.read_text())
        document["properties"]["merge.sources"] = json.dumps(read)
        path.write_text(json.dumps(document))
    hook = PaimonHook("paimon_default")

    found = tables_of_run(hook, "d", "r", WantedTables.of("tables", None))

    (built,) = found.built_on
    assert (built.table, built.snapshot_id, built.source) == ("shop.three", 2, "shop.one")
    assert "shop.three, snapshot 2: task other." in found.told()


def test_branches_count_by_what_they_alone_have(lake: Path) -> None:
    for name, told in (("copied", made_by("d", "r", "one-0")), ("own", made_by("d", "r", "b-0"))):
        branch = lake / f"shop.db/one/branch/branch-{name}"
        for each in ("schema", "snapshot"):
            (branch / each).mkdir(parents=True)
            for file in (lake / f"shop.db/one/{each}").iterdir():
                if each == "schema" or file.name == "snapshot-1":
                    (branch / each / file.name).write_bytes(file.read_bytes())
        document = json.loads((branch / "snapshot/snapshot-1").read_text())
        (branch / "snapshot/snapshot-1").write_text(json.dumps({**document, "properties": told}))
    hook = PaimonHook("paimon_default")

    found = tables_of_run(hook, "d", "r", WantedTables.of("tables", "shop.one")).names

    assert list(map(str, found)) == ["shop.one", "shop.one$branch_own"]
    named = WantedTables.of("tables", ["shop.one$branch_copied"])
    assert list(map(str, tables_of_run(hook, "d", "r", named).names)) == ["shop.one$branch_copied"]


def test_one_job_undoes_all_tables(lake: Path, submitter: FakeSubmitter) -> None:
    submitter.outcomes = [reported]

    result = Undos().run(on_refused="skip")

    request = submitter.request
    assert request.statement == UndoRunSpec("d", "r", ("shop.one", "shop.two"), "skip")
    assert (str(request.target), request.dry_run) == ("shop.one", False)
    assert result["status"] == "committed"
    assert [each["outcome"] for each in result["tables"]] == ["undone", "refused"]
    assert result["tables"][0]["commits"][0]["operation_id"] == "a"
    json.dumps(result)


def test_a_dry_run_tells_what_would_be_undone(
    lake: Path, submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    submitter.outcomes = [reported]

    result = Undos().run(dry_run="true")

    assert submitter.request.dry_run
    assert result["status"] == "dry_run"
    shown = capsys.readouterr().out
    assert "shop.two: refused, somebody built on it" in shown
    assert "rows that go 3 | come back 1" in shown
    assert "snapshot 2: merge of task t, operation a" in shown


def test_a_run_without_commits_is_an_error(warehouse: Path, submitter: FakeSubmitter) -> None:
    table(warehouse, "one", ("d", "other"))

    with pytest.raises(Exception, match="SNAPSHOT_NOT_FOUND: undo_run_id: no table"):
        Undos().run()

    assert not submitter.jobs


def test_a_snapshot_in_one_table_does_not_stand_for_the_others(
    lake: Path, submitter: FakeSubmitter
) -> None:
    """A job that dies behind its first table left no result: a retry does the rest."""
    hook = PaimonHook("paimon_default")
    told = made_by("care", "c", "undo") | {properties.STATEMENT: "undo_run"}
    one = TableFiles(lake, "one")
    one.latest = 3
    guard = lake / "shop.db/one/consumer"
    guard.mkdir()
    (guard / "consumer-merge-undo").write_text('{"nextSnapshot": 1}')
    (guard / "consumer-merge-one-0").write_text('{"nextSnapshot": 1}')
    path = lake / "shop.db/one/snapshot/snapshot-3"
    document = json.loads(path.read_text())
    undone = undone_properties("d", "r", ["one-0"])
    name = TableName("shop", "one")
    assert hook.recorded_result(name, "one-0") is not None
    path.write_text(json.dumps({**document, "properties": told | undone}))

    assert hook.recorded_result(name, "undo") is None
    # And what was taken back was not committed.
    assert hook.recorded_result(name, "one-0") is None


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"undo_run_id": ""}, "run_id: is empty"),
        ({"undo_dag_id": " "}, "dag_id: is empty"),
        ({"on_refused": "warn"}, "on_refused: 'warn' is not one of: fail, skip"),
        ({"tables": 7}, "tables: expected names of tables, found 7"),
        ({"tables": []}, r"tables: is empty"),
        ({"tables": "orders"}, "'orders' is not a pattern of tables"),
        ({"dry_run": "perhaps"}, "dry_run: 'perhaps' is neither"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], problem: str) -> None:
    given = {"undo_dag_id": "d", "undo_run_id": "r", **parameters}
    with pytest.raises(RequestError, match=problem):
        UndoRunOperator(task_id="t", **given)


def test_the_command_previews_and_undoes(
    lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs: list[Any] = []

    class Submitter:
        def __init__(self, settings: Any) -> None:
            self.settings = settings

        def submit(self, job: Any) -> None:
            jobs.append(job)
            store(job.work, reported(job.work))

    monkeypatch.setattr(command, "PlainPythonSubmitter", Submitter)
    arguments = ["undo", "--dag", "d", "--run", "r"]

    assert main([*arguments, "--dry-run", "--table", "shop.*"]) == 1
    assert main([*arguments, "--skip-refused"]) == 1
    assert main(["undo", "--dag", "d", "--run", "none"]) == 1

    shown = capsys.readouterr().out
    assert [each.work.dry_run for each in jobs] == [True, False]
    assert jobs[1].work.statement.on_refused == "skip"
    assert shown.count("shop.two: refused, somebody built on it") == 2
    run_id = jobs[1].work.origin.run_id
    again = f"To take this back: python -m airflow_provider_merge undo --dag {command.DAG_ID}"
    assert f"{again} --run {run_id}" in shown
    assert "No table has a snapshot of run none of d." in shown


def test_a_preview_is_approved(lake: Path, submitter: FakeSubmitter) -> None:
    submitter.outcomes = [reported]
    ticket = {"ticket": TICKET}

    Undos().run(approved=json.dumps(ticket))

    assert submitter.request.approved is not None
    assert submitter.request.approved.operation_id == "preview"
    parameters: dict[str, Any] = {"task_id": "t", "undo_dag_id": "d", "undo_run_id": "r"}
    with pytest.raises(RequestError, match="approved"):
        UndoRunOperator(**parameters, approved=ticket, dry_run=True)
    with pytest.raises(RequestError, match="not the result of a dry run"):
        UndoRunOperator(**parameters, approved={"tables": []})
