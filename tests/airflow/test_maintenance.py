"""Operators that take care of tables: their requests, wrong input, results, and how jobs start."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import jinja2
import pytest

from airflow_provider_merge.operators._shared.results import result_table
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators.branches import (
    CherryPickOperator,
    CreateBranchOperator,
    DeleteBranchOperator,
    FastForwardOperator,
)
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator
from airflow_provider_merge.operators.remove_orphan_files import RemoveOrphanFilesOperator
from airflow_provider_merge.operators.rollback import RollbackOperator, SetCurrentSnapshotOperator
from airflow_provider_merge.operators.tags import CreateTagOperator, DeleteTagOperator
from airflow_provider_merge.submit.plain_python import PlainPythonSubmitter
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings, SubmissionError
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    FastForwardSpec,
    Kept,
    MaintenanceReport,
    MaintenanceStatement,
    RemoveOrphanFilesSpec,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.errors import RequestError
from tests.airflow.launcher import Launcher
from tests.airflow.support import (
    PASSWORD,
    DagFile,
    FakeSubmitter,
    committed,
    connection,
    example_request,
)

TARGET: dict[str, Any] = {"task_id": "t", "target": "shop.orders"}
EXAMPLE = Path(__file__).resolve().parents[2] / "dags_examples" / "table_care.py"
REPORT = MaintenanceReport(
    snapshots=3,
    data_files=7,
    bytes_removed=12_345,
    earliest_snapshot_id=4,
    latest_snapshot_id=9,
    kept=(Kept("tag nightly", files=2),),
)


def reported(request: JobRequest) -> JobResult:
    status = "dry_run" if request.dry_run else "committed"
    return committed(
        request, status=status, metrics=Metrics(), new_snapshot_id=None, maintenance=REPORT
    )


@pytest.mark.parametrize(
    ("operator", "parameters", "problem"),
    [
        (ExpireSnapshotsOperator, {"retain_max": -1}, "retain_max: -1 is not a positive whole"),
        (ExpireSnapshotsOperator, {"retain_min": 0}, "retain_min: 0 is not a positive whole"),
        (
            ExpireSnapshotsOperator,
            {"retain_min": 5, "retain_max": 3},
            "retain_min: 5 is more than retain_max, 3",
        ),
        (ExpireSnapshotsOperator, {"older_than": "-7 d"}, "older_than: '-7 d' is neither"),
        (ExpireSnapshotsOperator, {"older_than": timedelta(7)}, "older_than: expected text, found"),
        (ExpireSnapshotsOperator, {"max_deletes": 2.5}, "max_deletes: 2.5 is not a positive whole"),
        (RemoveOrphanFilesOperator, {"older_than": 1}, "older_than: expected text, found int"),
        (
            ExpireSnapshotsOperator,
            {"older_than": "soon", "target": "{{ params.table }}"},
            "older_than: 'soon' is neither a duration such as 7 d nor a timestamp",
        ),
        (
            CreateTagOperator,
            {"tag": "nightly-{{ ds }}", "retention": 30},
            "retention: expected text, found int",
        ),
        (CreateTagOperator, {"tag": 7}, "tag: expected text, found int"),
        (
            ExpireSnapshotsOperator,
            {"clean_expired_metadata": 1},
            "clean_expired_metadata: 1 is neither true nor false",
        ),
        (ExpireSnapshotsOperator, {"dry_run": "perhaps"}, "dry_run: 'perhaps' is neither"),
        (ExpireSnapshotsOperator, {"use_spark": "no"}, "use_spark: 'no' is neither"),
        (RemoveOrphanFilesOperator, {"older_than": "a day"}, "older_than: 'a day' is neither"),
        (CreateTagOperator, {"tag": "a/b"}, "tag: 'a/b' is not the name of a tag"),
        (
            CreateTagOperator,
            {"tag": "t", "retention": "-1 d"},
            "retention: '-1 d' is not a duration",
        ),
        (DeleteTagOperator, {}, "tag: give either the name of a tag or expired=True"),
        (DeleteTagOperator, {"tag": "t", "expired": True}, "tag: give either the name"),
        (RollbackOperator, {}, "snapshot_id: give either a snapshot or a tag"),
        (RollbackOperator, {"snapshot_id": "x"}, "snapshot_id: 'x' is not a positive whole"),
        (CreateBranchOperator, {"branch": "main"}, "branch: main is the branch that every table"),
        (CreateBranchOperator, {"branch": "b", "retention": "7"}, "retention: '7' has no unit"),
        (DeleteBranchOperator, {"branch": "main"}, "branch: main is the branch that every table"),
        (FastForwardOperator, {"to": 7}, "to: expected text, found int"),
        (SetCurrentSnapshotOperator, {}, "snapshot_id: give either a snapshot or a tag"),
        (CherryPickOperator, {}, "snapshot_id: give either a snapshot or a wap_id"),
    ],
)
def test_wrong_input_is_named_when_the_dag_is_parsed(
    operator: type[TableOperator],
    parameters: dict[str, Any],
    problem: str,
) -> None:
    with pytest.raises(RequestError) as raised:
        operator(**{**TARGET, **parameters})
    assert raised.value.message.startswith(f"task 't': {problem}")


@pytest.mark.parametrize(
    ("operator", "parameters", "statement"),
    [
        (
            ExpireSnapshotsOperator,
            {"retain_max": "20", "retain_min": 5, "older_than": "7 d"},
            ExpireSnapshotsSpec(20, 5, "7 d", None),
        ),
        (
            ExpireSnapshotsOperator,
            {"clean_expired_metadata": "true"},
            ExpireSnapshotsSpec(clean_expired_metadata=True),
        ),
        (RemoveOrphanFilesOperator, {}, RemoveOrphanFilesSpec("1 d")),
        (CreateTagOperator, {"tag": "a", "snapshot_id": "7"}, CreateTagSpec("a", 7)),
        (DeleteTagOperator, {"expired": "true", "dry_run": True}, DeleteTagSpec(None)),
        (RollbackOperator, {"tag": "a", "force": True}, RollbackSpec(None, "a", True)),
        (
            CreateBranchOperator,
            {"branch": "b", "tag": "a", "max_snapshot_age": "5 d", "min_snapshots_to_keep": "3"},
            CreateBranchSpec("b", tag="a", max_snapshot_age="5 d", min_snapshots_to_keep=3),
        ),
        (DeleteBranchOperator, {"branch": "b", "if_exists": "true"}, DeleteBranchSpec("b", True)),
        (FastForwardOperator, {"to": "audit"}, FastForwardSpec("audit")),
        (SetCurrentSnapshotOperator, {"snapshot_id": "7"}, SetCurrentSnapshotSpec(7)),
        (CherryPickOperator, {"wap_id": "nightly"}, CherryPickSpec(wap_id="nightly")),
    ],
)
def test_parameters_become_the_statement(
    operator: type[TableOperator],
    parameters: dict[str, Any],
    statement: MaintenanceStatement,
) -> None:
    made = operator(**TARGET, **parameters)
    assert made.statement() == statement
    assert not made.needs_session()
    assert set(parameters) <= set(made.template_fields)


@pytest.mark.usefixtures("airflow_db", "warehouse")
def test_the_report_is_the_xcom(
    dag_file: Callable[..., DagFile], submitter: FakeSubmitter, caplog: pytest.LogCaptureFixture
) -> None:
    submitter.outcomes = [reported]
    body = (
        "from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator\n"
        'ExpireSnapshotsOperator(task_id="t", target="shop.orders", older_than="{{ params.age }}",'
        ' dry_run="{{ params.dry }}")'
    )
    run = dag_file(body, arguments='params={"age": "7 d", "dry": True}').run()

    assert run.state == "success"
    assert submitter.request.statement == ExpireSnapshotsSpec(older_than="7 d")
    assert submitter.request.dry_run
    (ti,) = run.get_task_instances()
    result = ti.xcom_pull(task_ids="t")
    assert (result["status"], result["snapshots"], result["data_files"]) == ("dry_run", 3, 7)
    assert result["kept"] == [{"by": "tag nightly", "snapshots": 0, "files": 2}]


def test_the_log_says_what_publishing_took() -> None:
    metrics = Metrics(publish_attempts=3, snapshots_met=2)
    text = result_table(committed(example_request(), metrics=metrics))
    assert "  published in try 3, behind 2 snapshots of others\n" in f"{text}\n"
    assert "published" not in result_table(committed(example_request()))


def test_the_log_of_a_new_table_has_no_counts() -> None:
    made = committed(example_request(), new_snapshot_id=None)
    assert result_table(made).splitlines() == ["shop.orders: created", "  seconds: join 0.5"]


def test_the_log_of_a_dry_run_says_what_would_be_removed() -> None:
    report = dataclasses.replace(REPORT, snapshots_left=5)
    request = example_request()
    lines = result_table(committed(request, status="dry_run", maintenance=report)).splitlines()
    counts = "snapshots 3 | tags 0 | data files 7 | index files 0 | manifests 0 | leftovers 0"
    assert lines[1:] == [
        f"  would remove: {counts} | bytes 12,345",
        "  would be kept for tag nightly: 0 snapshots, 2 data files",
        "  would be left because of max_deletes: 5 snapshots",
        "  snapshots afterwards: 4 to 9",
    ]
    done = result_table(committed(request, maintenance=REPORT)).splitlines()
    assert done[1:] == [
        f"  removed: {counts} | bytes 12,345",
        "  kept for tag nightly: 0 snapshots, 2 data files",
        "  snapshots 4 to 9",
    ]


def test_the_log_of_a_search_for_orphans_names_no_earliest_snapshot() -> None:
    report = dataclasses.replace(REPORT, earliest_snapshot_id=None)
    assert "None" not in result_table(committed(example_request(), maintenance=report))


def test_a_duration_that_is_no_text_has_an_example() -> None:
    with pytest.raises(RequestError) as raised:
        RemoveOrphanFilesOperator(**TARGET, older_than=timedelta(7))  # type: ignore[arg-type]
    assert raised.value.remedy.startswith("Write a duration such as '7 d', or a timestamp such as")


def test_the_log_says_how_many_snapshots_are_left() -> None:
    left = dataclasses.replace(REPORT, snapshots_left=1200)
    result = committed(example_request(), maintenance=left)
    assert "  left because of max_deletes: 1,200 snapshots\n" in result_table(result)


def submit(launcher: Launcher, **settings: Any) -> None:
    job = SparkJob("dag.task", example_request(), {"fs.s3.accessKeySecret": PASSWORD})
    found = SparkSettings(spark_env=str(launcher.folder), **settings)
    PlainPythonSubmitter(found).submit(job)


@pytest.fixture
def spark_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[2]")


@pytest.mark.usefixtures("spark_connection")
def test_the_job_runs_in_the_environments_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", "secret")
    launcher = Launcher.of_python(tmp_path / "env")

    submit(launcher)

    main, option, *rest, told = launcher.arguments
    assert (Path(main).name, option, told) == ("main.py", "--no-session", "--versions-told")
    assert rest[0::2] == ["--request", "--credentials", "--answers"]
    assert rest[5] == str(Path(main).parent)
    files = launcher.seen["files"]
    assert json.loads(files[rest[3]]["text"]) == {"fs.s3.accessKeySecret": PASSWORD}
    assert files[rest[1]]["mode"] == files[rest[3]]["mode"] == "0o600"
    assert not any(Path(path).exists() for path in (main, rest[1], rest[3]))
    variables = launcher.seen["environment"]
    assert Path(variables["PYTHONPATH"]).name == "package"
    assert "AIRFLOW_CONN_OTHER" not in variables
    assert PASSWORD not in json.dumps(variables) + json.dumps(launcher.arguments)


@pytest.mark.usefixtures("spark_connection")
def test_a_failing_python_is_told(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="exit code 3"):
        submit(Launcher.of_python(tmp_path / "env", "sys.exit(3)"))


@pytest.mark.usefixtures("spark_connection")
def test_a_killed_python_has_no_memory_to_set(tmp_path: Path) -> None:
    killed = Launcher.of_python(tmp_path / "env", "os.kill(os.getpid(), 9)")
    with pytest.raises(
        SubmissionError, match=r"\(signal 9, SIGKILL\), often for lack of memory\.$"
    ):
        submit(killed)


def test_cluster_mode_goes_through_spark_submit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"deploy-mode": "cluster"}
    connection(monkeypatch, "spark_default", conn_type="spark", host="yarn", extra=extra)
    launcher = Launcher.make(tmp_path / "env")

    submit(launcher)

    assert launcher.option("--deploy-mode") == "cluster"
    assert "--no-session" not in launcher.arguments


@pytest.mark.parametrize("use_spark", [True, False])
def test_use_spark_decides(use_spark: bool) -> None:
    operator = ExpireSnapshotsOperator(**TARGET, use_spark=use_spark)
    expected = SparkSubmitSubmitter if use_spark else PlainPythonSubmitter
    assert type(operator.get_submitter()) is expected


def test_create_table_needs_no_spark() -> None:
    operator = CreateTableOperator(**TARGET, columns=[column("id", "BIGINT")])
    assert type(operator.get_submitter()) is PlainPythonSubmitter


def test_the_example_dag() -> None:
    names: dict[str, Any] = {"__file__": str(EXAMPLE)}
    exec(compile(EXAMPLE.read_text(), str(EXAMPLE), "exec"), names)
    dag = names["dag"]
    asking = ["is_anything_old", "approval"]
    order = ["tag", "old_tags", "preview", *asking, "expire", "orphans"]
    assert [task.task_id for task in dag.topological_sort()] == order
    preview, expire = dag.task_dict["preview"], dag.task_dict["expire"]
    assert preview.is_dry_run()
    assert not expire.is_dry_run()
    assert expire.retries == 0, "max_deletes is that of one try"
    limits = ("retain_max", "retain_min", "older_than")
    assert [getattr(preview, each) for each in limits] == [getattr(expire, each) for each in limits]

    class Pulled:
        def xcom_pull(self, task_ids: str) -> dict[str, Any]:
            assert task_ids == "preview"
            return {"target": "shop.orders", **dataclasses.asdict(REPORT)}

    assert jinja2.Template(expire.max_deletes).render(ti=Pulled()) == "3"
    is_anything_old = dag.task_dict["is_anything_old"].python_callable
    assert [is_anything_old({"snapshots": count}) for count in (0, 3)] == [False, True]
    text = jinja2.Template(dag.task_dict["approval"].body).render(ti=Pulled())
    assert text.startswith("3 snapshots of shop.orders would expire")
    assert "- kept for tag nightly: 0 snapshots, 2 data files" in text
