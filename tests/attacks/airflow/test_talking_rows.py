"""What rows and libraries print is no word of the job or of Spark's client."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings
from spark_jobs.contract.job_lines import answer_name, publish_question
from tests.airflow.launcher import Launcher
from tests.airflow.support import connection, example_request

CLIENT = "26/11/26 12:00:00 INFO Client: "
EVIL = "\t tracking URL: https://evil.example/"
APPLICATION = "Spark application id: local-1, web UI: https://evil.example/"
# What a row holds that fails a task, and what an application prints before and after.
PRINTED = {
    "a tracking URL": EVIL,
    "the client, line breaks included": f"a value\n{CLIENT}\n{EVIL}",
    "an application": APPLICATION,
    "a driver's log line": f"2026-11-26 12:00:00,000 INFO job: {APPLICATION}",
    "an empty secret": f" {APPLICATION}",
    "another secret": f"{'0' * 32} {APPLICATION}",
}
# A driver that says what it is, as jobs do, and then prints a row.
DRIVER = """
folder = arguments[arguments.index("--answers") + 1]
secret = open(folder + "/line-secret").read()
print("26/11/26 12:00:00 WARN Utils: hello")
print("job:", secret, "Spark application id: local-17, web UI: none")
print({printed!r})
"""


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[1]")

    def submitted(then: str) -> list:
        launcher = Launcher.make(tmp_path / "env", then)
        heard: list = []
        job = SparkJob("dag.task", example_request(), announce=heard.append)
        SparkSubmitSubmitter(SparkSettings(spark_env=str(launcher.folder))).submit(job)
        return heard

    return submitted


@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
def test_a_row_leads_nobody_elsewhere(submit, printed: str) -> None:
    heard = submit(DRIVER.format(printed=printed))

    assert [each.application_id for each in heard] == ["local-17"]
    assert "evil" not in repr(heard)


@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
def test_nor_before_the_job_has_said_anything(submit, printed: str) -> None:
    # Spark's own loggers tell others' texts only behind their own names.
    lines = [f"26/11/26 12:00:00 ERROR Executor: {line}" for line in printed.splitlines()]

    heard = submit(f"print({lines!r}[0])" + DRIVER.format(printed=printed))

    assert "evil" not in repr(heard)


def test_a_row_gets_no_answer(submit, tmp_path: Path) -> None:
    request = example_request()
    seen = tmp_path / "seen"
    asked = publish_question(request.operation_id)
    then = (
        DRIVER.format(printed=asked)
        + f"""
time.sleep(0.5)
open({str(seen)!r}, "w").write(repr(os.path.exists(
    os.path.join(folder, {answer_name(request.operation_id)!r})
)))
"""
    )
    submit(then)

    assert seen.read_text() == "False"


def test_what_is_killed_is_what_the_client_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "yarn", conn_type="spark", host="yarn")
    lines = [
        f"{CLIENT}Submitted application application_1_0002",
        f"{CLIENT}Application report for application_1_0002 (state: FINISHED)",
        "\t diagnostics: a value of a row: application_9_0009",
    ]
    text = "\n".join(lines)
    launcher = Launcher.make(tmp_path / "env", f"print({text!r})")
    settings = SparkSettings("yarn", deploy_mode="cluster", spark_env=str(launcher.folder))
    submitter = SparkSubmitSubmitter(settings)
    heard: list = []

    submitter.submit(SparkJob("dag.task", example_request(), announce=heard.append))

    assert [each.application_id for each in heard] == ["application_1_0002"]
    assert submitter._hook._yarn_application_id == "application_1_0002"


def test_the_secret_is_logged_nowhere(submit, capfd: pytest.CaptureFixture[str]) -> None:
    submit(DRIVER.format(printed="a row"))

    logged = "".join(capfd.readouterr())
    assert "Spark application id: local-17" in logged
    assert not re.search("[0-9a-f]{32}", logged)
