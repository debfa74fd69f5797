"""The line that names a job's Spark application is understood."""

from __future__ import annotations

from spark_jobs.contract.job_lines import application_line, named_application


def test_the_line_never_changes() -> None:
    line = application_line("local-17", "http://host:4040")
    assert line == "Spark application id: local-17, web UI: http://host:4040"


def test_what_was_told_comes_back_from_a_log() -> None:
    line = f"2026-01-31 07:00:00 job: {application_line('app-1_2', 'http://host:4040')}\n"
    assert named_application(line) == ("app-1_2", "http://host:4040")


def test_an_application_without_a_page() -> None:
    assert named_application(application_line("local-17", None)) == ("local-17", "none")


def test_another_line_names_none() -> None:
    assert named_application("Spark application id: none yet") is None
