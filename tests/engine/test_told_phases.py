"""A job tells its operator the phase that begins, once the operator listens."""

from __future__ import annotations

import logging

import pytest

from spark_jobs.contract.job_lines import begun_phase
from spark_jobs.engine.runtime.progress import Progress, tell_phases


def test_the_phase_that_begins(caplog: pytest.LogCaptureFixture) -> None:
    # As in a job; both are as before afterwards.
    caplog.set_level(logging.INFO, "airflow_provider_merge.job")
    caplog.set_level(logging.NOTSET, "airflow_provider_merge.job.phases")
    progress = Progress()

    with progress.phase("plan"):
        pass
    tell_phases()
    with progress.phase("source"):
        assert [begun_phase(line) for line in caplog.messages] == ["source"]

    assert list(progress.seconds) == ["plan", "source"]
