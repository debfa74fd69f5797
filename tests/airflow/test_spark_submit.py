"""The command line that reaches spark-submit, its files, and what is refused before it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_merge import job_package
from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings, SubmissionError
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.request import JobRequest
from spark_jobs.errors import RequestError
from tests.airflow.launcher import Launcher
from tests.airflow.support import PASSWORD, connection, example_request

JOB = SparkJob("dag.task", example_request(), {"fs.s3.accessKeySecret": PASSWORD})

_OF_LOCAL_MASTERS = {
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": "spark_jobs.worker_daemon",
}


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[2]")
    return Launcher.make(tmp_path / "env")


def submit(launcher: Launcher, job: SparkJob = JOB, **settings: Any) -> None:
    settings = {"spark_env": str(launcher.folder), **settings}
    SparkSubmitSubmitter(SparkSettings(**settings)).submit(job)


def test_client_mode_names_absolute_private_files(launcher: Launcher) -> None:
    submit(launcher)
    arguments = launcher.arguments
    main, *rest = arguments[-10:]
    assert rest.pop() == "--versions-told"
    assert rest[0::2] == ["--request", "--credentials", "--answers", "--launched"]
    request, credentials, answers, launched = rest[1::2]
    assert Path(answers) == Path(request).parent
    assert float(launched) <= time.time()
    files = launcher.seen["files"]
    assert JobRequest.from_json(files[request]["text"]) == JOB.work
    assert json.loads(files[credentials]["text"]) == {"fs.s3.accessKeySecret": PASSWORD}
    assert files[request]["mode"] == files[credentials]["mode"] == "0o600"
    assert files[request]["folder_mode"] == "0o700"
    assert Path(main).name == "main.py"
    assert launcher.option("--files") is None


def test_a_local_master_finds_the_package_on_its_path(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    submit(launcher)
    package, mine = launcher.seen["environment"]["PYTHONPATH"].split(":")
    assert (Path(package).name, mine) == ("package", "/mine")
    assert Path(package).parent == Path(launcher.given("--request")).parent
    assert job_package.main_file().is_file(), "the files that it links to stay"
    assert launcher.option("--py-files") is None
    assert launcher.conf["spark.python.daemon.module"] == "spark_jobs.worker_daemon"


def test_another_master_is_sent_the_package(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    connection(monkeypatch, "spark_default", conn_type="spark", host="spark://host:7077")
    submit(launcher)
    assert Path(launcher.given("--py-files")).name == "spark_jobs.zip"
    assert launcher.seen["environment"]["PYTHONPATH"] == "/mine"
    assert launcher.conf.keys().isdisjoint(_OF_LOCAL_MASTERS)


@pytest.mark.parametrize("key", _OF_LOCAL_MASTERS)
def test_conf_wins_over_what_suits_a_local_master(launcher: Launcher, key: str) -> None:
    submit(launcher)
    assert launcher.conf[key] == _OF_LOCAL_MASTERS[key]
    launcher.record.unlink()
    submit(launcher, conf={key: "mine"})
    assert launcher.conf[key] == "mine"


def test_workers_have_sockets_in_the_jobs_folder(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    submit(launcher)
    folder = Path(launcher.given("--request")).parent
    assert launcher.conf["spark.python.unix.domain.socket.enabled"] == "true"
    assert launcher.conf["spark.python.unix.domain.socket.dir"] == str(folder)
    assert launcher.seen["files"][launcher.option("--request")]["folder_mode"] == "0o700"


def test_workers_have_none_where_the_path_would_be_too_long(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    submit(launcher)
    assert not [each for each in launcher.conf if "socket" in each]


@pytest.mark.parametrize(("most", "mode"), [(1, None), (2, "FAIR")])
def test_several_statements_go_as_one_file(launcher: Launcher, most: int, mode: str | None) -> None:
    batch = JobBatch("batch-1", (example_request(), example_request()), max_parallel=most)
    submit(launcher, SparkJob("dag.task", batch))
    path = launcher.option("--batch")
    assert JobBatch.from_json(launcher.seen["files"][path]["text"]) == batch
    assert launcher.option("--request") is None
    assert launcher.conf.get("spark.scheduler.mode") == mode
    assert launcher.seen["environment"]["AIRFLOW_MERGE_OPERATION"] == "batch-1"


def test_files_are_removed_afterwards(launcher: Launcher, tmp_path: Path) -> None:
    submit(launcher)
    assert launcher.seen["files"]
    assert not [path for path in launcher.seen["files"] if Path(path).exists()]
    assert [path.name for path in tmp_path.iterdir()] == ["env"]


def test_files_are_removed_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher
) -> None:
    failing = Launcher.make(tmp_path / "failing", then="sys.exit(3)")
    with pytest.raises(SubmissionError, match=r"^The driver ended with exit code 3\.") as caught:
        submit(failing)
    assert "the launcher's last words" in str(caught.value)
    assert "--master" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["env", "failing"]


@pytest.mark.parametrize(
    ("end", "memory", "said"),
    [
        (
            "os.kill(os.getpid(), 9)",
            None,
            "(signal 9, SIGKILL), often for lack of memory: driver_memory is Spark's default, 1g.",
        ),
        (
            "sys.exit(137)",
            "4g",
            "(signal 9, SIGKILL), often for lack of memory: driver_memory is 4g.",
        ),
        ("sys.exit(143)", "4g", "(signal 15, SIGTERM)."),
    ],
)
def test_a_driver_that_was_killed(
    tmp_path: Path, launcher: Launcher, end: str, memory: str | None, said: str
) -> None:
    killed = Launcher.make(tmp_path / "killed", then=end)
    with pytest.raises(SubmissionError) as caught:
        submit(killed, driver_memory=memory)
    assert str(caught.value).startswith(f"The driver was killed {said}")
    assert ("the launcher's last words" in str(caught.value)) == ("SIGTERM" in said)


def test_files_of_a_killed_worker_are_removed(launcher: Launcher, tmp_path: Path) -> None:
    mine = tmp_path / f"merge-job-{JOB.work.operation_id}-old"
    other = tmp_path / "merge-job-other-old"
    for folder in (mine, other):
        folder.mkdir()
        (folder / "credentials.json").write_text("{}")
    submit(launcher)
    assert not mine.exists()
    assert other.exists()


def test_no_credentials_no_file(launcher: Launcher) -> None:
    submit(launcher, SparkJob("dag.task", example_request()))
    assert "--credentials" not in launcher.arguments


def test_secret_is_in_no_argument_and_no_variable(
    launcher: Launcher, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    submit(launcher)
    seen = launcher.seen
    assert PASSWORD not in json.dumps([seen["arguments"], seen["environment"]])
    texts = [each["text"] for name, each in seen["files"].items() if "credentials" not in name]
    assert PASSWORD not in json.dumps(texts)
    assert PASSWORD not in caplog.text + "".join(capfd.readouterr())
    assert PASSWORD not in repr(JOB)


def test_python_and_home_of_the_environment(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/somewhere/else")
    submit(launcher)
    python = str(launcher.folder / "bin" / "python")
    assert launcher.conf["spark.pyspark.python"] == python
    assert launcher.conf["spark.pyspark.driver.python"] == python
    assert launcher.seen["environment"]["SPARK_HOME"].startswith(str(launcher.folder))


def test_what_people_tune(launcher: Launcher) -> None:
    submit(
        launcher,
        conf={"spark.pyspark.python": "./env/bin/python", "spark.sql.shuffle.partitions": "7"},
        driver_memory="3g",
        driver_cores=2,
        executor_memory="4g",
        executor_cores=5,
        num_executors=6,
        yarn_queue="nightly",
        archives="env.tar.gz#env",
    )
    options = {
        "--master": "local[2]",
        "--name": "dag.task",
        "--driver-memory": "3g",
        "--executor-memory": "4g",
        "--executor-cores": "5",
        "--num-executors": "6",
        "--queue": "nightly",
        "--archives": "env.tar.gz#env",
    }
    assert {name: launcher.option(name) for name in options} == options
    assert launcher.conf["spark.driver.cores"] == "2"
    assert launcher.conf["spark.sql.shuffle.partitions"] == "7"
    assert launcher.conf["spark.pyspark.python"] == "./env/bin/python"
    assert launcher.conf["spark.log.level"] == "WARN"


def test_all_of_the_connection(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"queue": "root.etl", "principal": "etl@EXAMPLE", "deploy-mode": "client"}
    connection(monkeypatch, "spark_yarn", conn_type="spark", host="yarn", extra=extra)
    submit(launcher, spark_conn_id="spark_yarn")
    assert launcher.option("--master") == "yarn"
    assert launcher.option("--queue") == "root.etl"
    assert launcher.option("--principal") == "etl@EXAMPLE"
    assert launcher.option("--deploy-mode") == "client"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://host:6443"])
def test_cluster_mode_ships_the_files(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    connection(monkeypatch, "spark_cluster", conn_type="spark", host=master)
    if master.startswith("k8s"):
        # The provider takes the exit code of the driver from the launcher's log.
        launcher = Launcher.make(launcher.folder.parent / "k8s", then="print('Exit code: 0')")
        monkeypatch.setattr(f"{SparkSubmitHook.__module__}.kube_client", object(), raising=False)
    submit(launcher, spark_conn_id="spark_cluster", deploy_mode="cluster")
    assert launcher.option("--master") == master
    assert launcher.option("--deploy-mode") == "cluster"
    shipped = launcher.option("--files").split(",")
    assert [Path(path).name for path in shipped] == ["request.json", "credentials.json"]
    assert all(Path(path).is_absolute() for path in shipped)
    assert launcher.arguments[-4:] == [
        "--request", "request.json", "--credentials", "credentials.json"
    ]  # fmt: skip
    assert "spark.pyspark.python" not in launcher.conf, "the driver's image has its own Python"


@pytest.mark.parametrize("master", ["spark://host:7077", "local[*]"])
def test_cluster_mode_needs_yarn_or_kubernetes(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    connection(monkeypatch, "spark_cluster", conn_type="spark", host=master)
    with pytest.raises(RequestError, match=r"deploy_mode: Spark runs no Python .*client"):
        submit(launcher, spark_conn_id="spark_cluster", deploy_mode="cluster")
    assert not launcher.record.exists()


def test_cluster_mode_of_the_connection_is_seen(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"deploy-mode": "cluster"}
    connection(monkeypatch, "spark_ha", conn_type="spark", host="spark://a:1,b:1", extra=extra)
    with pytest.raises(RequestError, match="deploy_mode"):
        submit(launcher, spark_conn_id="spark_ha")


def test_unknown_deploy_mode_of_the_connection(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"deploy-mode": "remote"}
    connection(monkeypatch, "spark_odd", conn_type="spark", host="yarn", extra=extra)
    with pytest.raises(RequestError, match="connection 'spark_odd', deploy-mode: 'remote'"):
        submit(launcher, spark_conn_id="spark_odd")


def test_kubernetes_without_its_provider(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "spark_k8s", conn_type="spark", host="k8s://https://host:6443")
    with pytest.raises(RequestError, match="apache-airflow-providers-cncf-kubernetes"):
        submit(launcher, spark_conn_id="spark_k8s")


def test_missing_connection_is_not_yarn(launcher: Launcher) -> None:
    with pytest.raises(RequestError, match="spark_conn_id: there is no connection 'nowhere'"):
        submit(launcher, spark_conn_id="nowhere")
    assert not launcher.record.exists()


def test_the_first_compiler_works_alone(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=4")
    submit(launcher)
    options = launcher.seen["environment"]["SPARK_SUBMIT_OPTS"].split()
    assert options.index("-XX:+IgnoreUnrecognizedVMOptions") == 0
    assert "-XX:Tier3InvocationThreshold=1000" in options
    assert options.index("-XX:TieredStopAtLevel=1") < len(options) - 1
    assert options[-1] == "-XX:TieredStopAtLevel=4", "what the user says wins"


def test_both_compilers_wait_longer_unless_somebody_says_else(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:Tier4BackEdgeThreshold=40000")
    submit(launcher, SparkJob("dag.task", example_request(), both_compilers=True))
    options = launcher.seen["environment"]["SPARK_SUBMIT_OPTS"].split()
    assert "-XX:Tier4InvocationThreshold=500000" in options
    assert options.index("-XX:+IgnoreUnrecognizedVMOptions") == 0
    assert options.index("-XX:Tier4BackEdgeThreshold=4000000") < len(options) - 1
    assert options[-1] == "-XX:Tier4BackEdgeThreshold=40000"


def test_compilers_of_drivers_elsewhere_are_left_alone(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    connection(monkeypatch, "spark_default", conn_type="spark", host="yarn")
    submit(launcher, deploy_mode="cluster")
    assert "SPARK_SUBMIT_OPTS" not in launcher.seen["environment"]


def test_environment_from_the_connection(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"spark-env": str(launcher.folder)}
    connection(monkeypatch, "spark_default", conn_type="spark", host="local", extra=extra)
    submit(launcher, spark_env=None)
    assert launcher.record.exists()


def test_environment_from_the_configuration(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__MERGE__SPARK_ENV", str(launcher.folder))
    submit(launcher, spark_env=None)
    assert launcher.record.exists()


def test_environment_without_pyspark(launcher: Launcher, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"^REQUEST_INVALID: spark_env: .* does not exist"):
        submit(launcher, spark_env=str(tmp_path))


def test_no_spark_submit_anywhere(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("AIRFLOW__MERGE__SPARK_ENV", raising=False)
    with pytest.raises(RequestError, match="spark_env: there is no spark-submit on this worker"):
        submit(launcher, spark_env=None)


def test_mark_is_set_for_the_job_only(launcher: Launcher) -> None:
    submit(launcher)
    assert launcher.seen["environment"]["AIRFLOW_MERGE_OPERATION"] == JOB.work.operation_id
    assert "AIRFLOW_MERGE_OPERATION" not in os.environ
