"""A task that is ended: its job is told before it publishes, and what it did is not forgotten."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.models.taskinstance import TaskInstance

from airflow_provider_merge.operators._shared import outcome
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators._shared.task_end import task_end
from airflow_provider_merge.submit.plain_python import PlainPythonSubmitter
from airflow_provider_merge.submit.processes import OPERATION, end_processes
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings, SubmissionError
from spark_jobs.contract.job_lines import answer_name, publish_question
from spark_jobs.contract.operation_files import note_file, note_text
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import ErrorInfo, JobResult
from tests.airflow.launcher import Launcher
from tests.airflow.support import (
    DagFile,
    FakeSubmitter,
    committed,
    connection,
    example_request,
    failed,
)
from tests.airflow.test_kill import wait_for

# A driver that asks twice, and notes what it hears.
ASKING = """
from pathlib import Path
folder = Path(arguments[arguments.index("--answers") + 1])
answer, secret = folder / {name!r}, (folder / "line-secret").read_text()
# A row that asks gets no answer, which would be there too early.
print("2026-11-22 INFO airflow_provider_merge.job:", {question!r}, flush=True)
time.sleep(0.2)
assert not answer.exists()
for _ in range(2):
    print("2026-11-22 INFO airflow_provider_merge.job:", secret, {question!r}, flush=True)
    while not answer.exists():
        time.sleep(0.01)
    with open({heard!r}, "a") as file:
        print(answer.read_text() or "nothing", file=file)
    answer.unlink()
"""
MERGE = """
MergeIntoOperator(
    task_id="merge",
    target="shop.orders",
    source=table_source("shop.updates"),
    on="t.id = s.id",
    when=[when_matched().update_all()],
    {more}
)
"""
CONFLICT = ErrorInfo("COMMIT_CONFLICT", "snapshot 9 changed the region", "", retryable=True)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def run(dag_file: Callable[..., DagFile], **more: Any) -> TaskInstance:
    parameters = "".join(f"{name}={value!r}," for name, value in more.items())
    (ti,) = dag_file(MERGE.format(more=parameters)).run().get_task_instances()
    return ti


def noting(finish: Callable[[JobRequest], Any]) -> Callable[[JobRequest], Any]:
    """A job that notes its operation before it does anything."""

    def outcome(request: JobRequest) -> Any:
        note = note_of(request)
        note.parent.mkdir(exist_ok=True)
        note.write_text(note_text([request.operation_id]))
        return finish(request)

    return outcome


def note_of(request: JobRequest) -> Path:
    name = note_file(request.origin)
    assert name is not None
    return Path(request.catalog.warehouse) / name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("submitter", "make"),
    [(SparkSubmitSubmitter, Launcher.make), (PlainPythonSubmitter, Launcher.of_python)],
)
def test_the_job_is_told_what_became_of_its_task(
    submitter: type[SparkSubmitSubmitter | PlainPythonSubmitter],
    make: Callable[..., Launcher],
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection(monkeypatch, "spark_default", conn_type="spark", host="local")
    request = example_request()
    heard, name = temporary / "heard", answer_name(request.operation_id)
    then = ASKING.format(
        question=publish_question(request.operation_id), name=name, heard=str(heard)
    )
    launcher = make(temporary / "env", then)
    ends = iter(["", "its state is failed"])
    settings = SparkSettings(spark_env=str(launcher.folder))

    submitter(settings).submit(SparkJob("dag.task", request, ended=lambda: next(ends)))

    assert heard.read_text().splitlines() == ["nothing", "its state is failed"]


@pytest.mark.slow
def test_a_driver_on_a_cluster_can_not_publish_any_more(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "yarn", conn_type="spark", host="yarn")
    request = example_request()
    launcher = Launcher.make(temporary / "env", "time.sleep(600)")
    settings = SparkSettings("yarn", deploy_mode="cluster", spark_env=str(launcher.folder))
    submitter = SparkSubmitSubmitter(settings)
    given_up = []
    job = SparkJob("dag.task", request, give_up=lambda: given_up.append(request.operation_id))

    def submit() -> None:
        with pytest.raises(SubmissionError):
            submitter.submit(job)

    thread = threading.Thread(target=submit)
    thread.start()
    try:
        wait_for(launcher.record.exists)
        assert given_up == []
        submitter.kill()
    finally:
        end_processes({OPERATION: request.operation_id})
        thread.join(60)

    assert given_up == [request.operation_id]
    assert "--answers" not in launcher.arguments


@pytest.mark.usefixtures("airflow_db")
def test_airflow_tells_the_state_of_a_task(
    dag_file: Callable[..., DagFile], tmp_path: Path
) -> None:
    told = tmp_path / "told"
    body = f"""
    from pathlib import Path
    from types import SimpleNamespace
    from airflow_provider_merge.operators._shared.task_end import task_end

    @task
    def first():
        pass

    @task
    def second(ti=None):
        others = {{"dag_id": ti.dag_id, "run_id": ti.run_id, "map_index": -1}}
        others["get_task_states"] = ti.get_task_states
        first = SimpleNamespace(task_id="first", **others)
        nobody = SimpleNamespace(task_id="nobody", **others)
        told = [task_end(each) for each in (ti, first, nobody)]
        Path({str(told)!r}).write_text("|".join(told))

    first() >> second()
    """
    dag_file(body).run()

    assert told.read_text() == "|its state is success|"


def test_an_airflow_that_does_not_answer_ends_no_job(caplog: pytest.LogCaptureFixture) -> None:
    class Task:
        dag_id, run_id, task_id, map_index = "dag", "run", "task", 3

        @staticmethod
        def get_task_states(**_: object) -> None:
            raise ConnectionError("the server is away")

    assert task_end(Task()) == ""
    assert "could not be asked whether the task still runs: the server is away" in caplog.text


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_a_task_that_ends_well_leaves_no_note(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [noting(committed)]

    assert run(dag_file).state == "success"

    assert submitter.request.after_ended_try == "fail"
    assert not note_of(submitter.request).exists()


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_a_task_that_fails_leaves_its_note(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [noting(lambda request: failed(request, CONFLICT))]

    assert run(dag_file).state == "failed"

    assert note_of(submitter.request).exists()


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_a_task_that_was_killed_after_its_job_had_published_leaves_its_note(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operators = []

    def get_submitter(operator: TableOperator) -> FakeSubmitter:
        operators.append(operator)
        return submitter

    def kill_and_commit(request: JobRequest) -> JobResult:
        # What Airflow's signal handler does in the middle of the job.
        operators[0].on_kill()
        return committed(request)

    monkeypatch.setattr(TableOperator, "get_submitter", get_submitter)
    submitter.outcomes = [noting(kill_and_commit)]

    run(dag_file)

    assert submitter.kills == 1
    assert note_of(submitter.request).exists()
    assert "The task was ended after its job had done the work: its processes" in caplog.text


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_a_dry_run_leaves_the_note_of_others(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter
) -> None:
    submitter.outcomes = [noting(lambda request: committed(request, status="dry_run"))]

    assert run(dag_file, dry_run=True).state == "success"

    assert note_of(submitter.request).exists()


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_a_note_that_can_not_be_removed_is_told(
    dag_file: Callable[..., DagFile],
    submitter: FakeSubmitter,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: object) -> None:
        raise OSError("the storage is away")

    monkeypatch.setattr(outcome, "forget_tries", away)

    assert run(dag_file).state == "success"

    assert "it will take this try for an ended one: the storage is away" in caplog.text


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_what_an_ended_try_committed_is_said_aloud(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "Operation op-1 of this task was ended, but had committed snapshot 7."
    submitter.outcomes = [lambda request: committed(request, warnings=(text,))]

    assert run(dag_file, after_ended_try="{{ 'run' }}").state == "success"

    assert submitter.request.after_ended_try == "run"
    assert re.search(rf"\[warning\s*\] {re.escape(text)}", capsys.readouterr().out)


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_giving_up_takes_the_lease(warehouse: Path) -> None:
    request = example_request()
    catalog = type(request.catalog)("paimon", str(warehouse))
    request = example_request(operation_id=request.operation_id, catalog=catalog)
    scratch = warehouse / "_operations" / f"{request.operation_id}-{'a' * 32}"
    scratch.mkdir(parents=True)
    (scratch / "lease").touch()

    class Hook:
        @staticmethod
        def workspace_options() -> dict[str, Any]:
            return {}

    outcome.give_up([(request, Hook())])  # type: ignore[list-item]

    assert not scratch.exists()
