"""A job's lines in the task's log: their own levels, stack traces folded."""

from __future__ import annotations

import logging

import pytest

from airflow_provider_merge.submit.job_log import JobLog

LINES = {
    "26/11/23 16:00:00 INFO SparkContext: Running": logging.INFO,
    "26/11/23 16:00:01 WARN TaskSetManager: Lost task": logging.WARNING,
    "java.lang.IllegalStateException: boom": logging.WARNING,
    "2026-11-23 16:00:02,123 INFO spark_jobs: 3 files": logging.INFO,
    "2026-11-23 16:00:02,124 WARNING spark_jobs: cleaning up failed": logging.WARNING,
    "2026-11-23 16:00:02,125 ERROR spark_jobs: The job failed": logging.ERROR,
    "Traceback (most recent call last):": logging.ERROR,
    "26/11/23 16:00:03 FATAL X: y": logging.CRITICAL,
    "WARNING: A JNI global reference": logging.WARNING,
    'Setting Spark log level to "WARN".': logging.DEBUG,
    "Using Spark's default log4j profile: org/apache/log4j2.properties": logging.DEBUG,
    "26/11/23 16:00:04 WARN NativeCodeLoader: Unable to load native-hadoop library": logging.DEBUG,
    "26/11/23 16:00:05 WARN Utils: Your hostname, a, resolves to a loopback address": logging.DEBUG,
    "26/11/23 16:00:05 WARN Utils: Set SPARK_LOCAL_IP if you need to bind": logging.DEBUG,
    "WARNING: Using incubator modules: jdk.incubator.vector": logging.DEBUG,
    "a row": logging.WARNING,
}


@pytest.fixture
def job_log(caplog: pytest.LogCaptureFixture) -> JobLog:
    caplog.set_level(logging.DEBUG)
    return JobLog(logging.getLogger("job"))


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int]]:
    return [(record.getMessage(), record.levelno) for record in caplog.records]


def test_levels(job_log: JobLog, caplog: pytest.LogCaptureFixture) -> None:
    for line in LINES:
        job_log.info(line)

    assert said(caplog) == list(LINES.items())


def test_a_percent_sign_is_text(job_log: JobLog, caplog: pytest.LogCaptureFixture) -> None:
    job_log.info("100 %s done")
    job_log.info("Identified: %s", "application_1_1")

    assert [text for text, _ in said(caplog)] == ["100 %s done", "Identified: application_1_1"]


def test_stack_traces_are_folded(job_log: JobLog, caplog: pytest.LogCaptureFixture) -> None:
    frames = ["at a.b.C$.d(E.scala:1)", "at java.base/java.lang.Thread.run(Thread.java:840)"]
    first = ["26/11/23 16:00:00 ERROR Executor: Exception in task", "java.io.IOException: x"]
    second = ["Caused by: java.io.EOFException", "at a.B.<init>(C.java:2)", "... 12 more"]

    for line in [*first, *frames, *second]:
        job_log.info(line)
    job_log.close()

    fold, unfold = "::group::Java stack trace", "::endgroup::"
    expected = [*first, fold, *frames, unfold, second[0], fold, *second[1:], unfold]
    assert said(caplog) == [(text, logging.ERROR) for text in expected]


def test_a_line_with_a_long_value_is_cut(job_log: JobLog, caplog: pytest.LogCaptureFixture) -> None:
    job_log.info(f"26/11/23 16:00:00 ERROR Executor: no number: '{'9' * 6_000_000}' in SQL")

    ((text, level),) = said(caplog)
    assert len(text) <= 20_000
    assert text.startswith("26/11/23 16:00:00 ERROR Executor: no number: '999")
    assert text.endswith("999' in SQL")
    assert level == logging.ERROR
