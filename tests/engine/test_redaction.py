"""A job that fails with an error that quotes a secret tells the error without the secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs import run
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.engine.runtime.redaction import Redaction
from spark_jobs.errors import CatalogError, ErrorCode

SECRET = "s3cr3t+/(key)"
PLAIN = "***"


@pytest.fixture
def request_(tmp_path: Path) -> JobRequest:
    return JobRequest(
        "op", TableName("db", "t"), CatalogSpec("paimon", str(tmp_path)), DeleteSpec("t")
    )


@pytest.fixture
def root_log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize(
    "failure",
    [
        CatalogError(ErrorCode.METADATA_UNREADABLE, f"key {SECRET} is wrong", f"not {SECRET}"),
        OSError(f"AWS Error: signature of {SECRET} does not match"),
    ],
)
def test_an_error_that_quotes_a_secret(
    spark: SparkSession,
    request_: JobRequest,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(run, "open_connector", fail)

    result = run.run(request_, spark, {"fs.s3.accessKeySecret": SECRET})

    assert result.error is not None
    assert SECRET not in result.to_json()
    assert json.dumps(SECRET)[1:-1] not in result.to_json()
    assert PLAIN in result.error.message


def test_a_stored_error_that_quotes_a_secret(
    spark: SparkSession, request_: JobRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(f"wrong: {SECRET}")

    monkeypatch.setattr("spark_jobs.engine.job.statement_job.Job.done", fail)

    run.run(request_, spark, {"fs.s3.accessKeySecret": SECRET})

    stored = (tmp_path / "_operations" / "op.json").read_text()
    assert SECRET not in stored
    assert f"wrong: {PLAIN}" in stored


def test_log_lines_and_traces(root_log: io.StringIO) -> None:
    Redaction.of([SECRET, "short"]).guard_logs()

    try:
        raise ValueError(f"no such key: {SECRET}")
    except ValueError:
        logging.getLogger("any").exception("a short line with %s", SECRET)

    assert SECRET not in root_log.getvalue()
    assert "a short line with ***" in root_log.getvalue()
    assert "ValueError: no such key: ***" in root_log.getvalue()
