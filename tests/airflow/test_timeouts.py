"""A task whose execution_timeout passes tells its phase, the seconds, and what it waited for."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_merge.submit.output_lines import OutputLine
from airflow_provider_merge.submit.phases import without_phases
from tests.airflow.launcher import Launcher
from tests.airflow.support import DagFile, connection
from tests.support.paimon_metadata import TableFiles

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db")]

# A job that tells its operator of phases, prints what rows may print, and goes on and on.
JOB = """
folder = arguments[arguments.index("--answers") + 1]
secret = open(os.path.join(folder, "line-secret")).read()
said = [secret + " Phase begins: plan", secret + " Phase begins: {phase}", "Phase begins: clean"]
for line in said:
    print("2026-01-31 10:00:00,000 DEBUG airflow_provider_merge.job.phases: " + line, flush=True)
time.sleep(600)
"""
TASKS: dict[str, tuple[str, Callable[[Path, str], Launcher], str]] = {
    "DeleteFromOperator": ("where='id = 1'", Launcher.make, "start"),
    "TruncateTableOperator": ("", Launcher.of_python, "imports"),
}


@pytest.mark.parametrize("operator", TASKS)
def test_a_job(
    operator: str,
    warehouse: Path,
    dag_file: Callable[..., DagFile],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    TableFiles(warehouse).create()
    parameters, make, first = TASKS[operator]
    launcher = make(tmp_path / "env", JOB.format(phase="source"))
    body = f"""
        from datetime import timedelta
        {operator}(task_id="task", target="shop.orders", spark_env={str(launcher.folder)!r},
            execution_timeout=timedelta(seconds=8), {parameters})
    """

    (ti,) = dag_file(body).run().get_task_instances()

    log = capsys.readouterr().out
    assert ti.state == "failed"
    assert launcher.record.exists(), log
    found = re.search(
        r"ended by its execution_timeout, 0:00:08, in phase source, for (\d+\.\d) seconds, waiting "
        r"for Spark to read the sources; seconds before: prepare \d+\.\d \| (\w+) \d+\.\d \| plan",
        log,
    )
    assert found, log
    assert found[2] == first
    assert f"Where: task {ti.dag_id}.task" in log


def test_what_the_job_tells_is_not_shown_and_what_others_print_tells_nothing() -> None:
    lines = [OutputLine("Phase begins: plan", is_own=True), OutputLine("Phase begins: clean")]
    entered: list[object] = []

    shown = [line.text for line in without_phases(lines, entered.append)]

    assert (shown, entered) == (["Phase begins: clean"], ["plan"])


# The fields of a connection to a REST catalog, by its type.
SERVERS = {
    "paimon": lambda uri: {"extra": {"metastore": "rest", "uri": uri, "warehouse": "/lake"}},
    "lakehouse_iceberg": lambda uri: {"host": uri, "extra": {"warehouse": "lake"}},
}


@pytest.mark.parametrize("conn_type", SERVERS)
def test_a_catalog_that_does_not_answer(
    conn_type: str,
    dag_file: Callable[..., DagFile],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Airflow's alarm rings once, and is lost if it rings in a weak reference's callback, as it
    # can while Python imports: so it rings long after that.
    connection(monkeypatch, "spark_default", conn_type="spark", host="local[1]")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fields = SERVERS[conn_type](f"http://127.0.0.1:{silent.getsockname()[1]}")
        fields["extra"]["workspace"] = str(tmp_path)
        connection(monkeypatch, "silent", conn_type=conn_type, **fields)
        body = """
            from datetime import timedelta
            DeleteFromOperator(task_id="task", target="shop.orders", where="id = 1",
                catalog_conn_id="silent", execution_timeout=timedelta(seconds=10))
        """
        (ti,) = dag_file(body).run().get_task_instances()

    log = capsys.readouterr().out
    assert ti.state == "failed"
    assert re.search(r"in phase prepare, for (9|10)\.\d seconds", log), log
    assert "waiting for the catalog and the metadata of tables" in log
