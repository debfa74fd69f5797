"""The last thing before a snapshot is published: whether the job's task still runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_jobs.contract.job_lines import answer_name, asking_operation
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.runtime.permission import LastLook
from spark_jobs.errors import CommitError, ErrorCode
from tests.conformance.behaviour import Behaviour, insert, not_matched
from tests.conformance.check import OPERATION_ID, request_of
from tests.conformance.harness import Harness
from tests.conformance.tables import ORDERS

ADD = Behaviour("", "VALUES (1) AS s(id)", (not_matched(insert(id="s.id", req="'r'", p="'a'")),))


class Launcher(logging.Handler):
    """Reads what a job says, and answers each question with the next of ``texts``."""

    def __init__(self, folder: Path, texts: list[str]) -> None:
        super().__init__()
        self._folder = folder
        self._texts = texts
        self.questions = 0

    def emit(self, record: logging.LogRecord) -> None:
        if asking_operation(record.getMessage()) == OPERATION_ID:
            self.questions += 1
            # The job goes on meanwhile, and waits.
            threading.Timer(0.2, self._give, (self._texts.pop(0),)).start()

    def _give(self, text: str) -> None:
        half = self._folder / "half"
        half.write_text(text)
        half.rename(self._folder / answer_name(OPERATION_ID))


@contextmanager
def launcher(folder: Path, *texts: str) -> Iterator[Launcher]:
    log, listening = logging.getLogger("airflow_provider_merge.job"), Launcher(folder, [*texts])
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(listening)
    try:
        yield listening
    finally:
        log.removeHandler(listening)
        log.setLevel(level)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    (tmp_path / "job").mkdir()
    return tmp_path / "job"


@pytest.mark.slow
@pytest.mark.parametrize("connector", ["folder", "append-cow"])
def test_nothing_is_published_for_a_task_that_was_ended(
    make_table: Callable[..., Harness], connector: str, answers: Path
) -> None:
    harness = make_table(connector, ORDERS, partitioned=True)
    before = harness.state()
    manifests = {*harness.warehouse.rglob("manifest/*")}

    with launcher(answers, "its state is failed") as asked:
        request = request_of(ADD, harness)
        result = Job(request, harness.spark, harness.open(), answers=answers).run()

    after = harness.state()
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("RUN_GIVEN_UP", True)
    assert "its task was ended: its state is failed" in result.error.message
    assert asked.questions == 1
    assert (after.snapshot_id, after.files) == (before.snapshot_id, before.files)
    assert after.on_disk == before.on_disk
    assert {*harness.warehouse.rglob("manifest/*")} == manifests
    assert not list(harness.warehouse.rglob("consumer-*"))


@pytest.mark.slow
def test_the_snapshot_of_a_task_that_goes_on_is_published(
    make_table: Callable[..., Harness], answers: Path
) -> None:
    harness = make_table("append-cow", ORDERS, partitioned=True)

    with launcher(answers, "") as asked:
        request = request_of(ADD, harness)
        result = Job(request, harness.spark, harness.open(), answers=answers).run()

    assert (result.error, result.status) == (None, "committed")
    assert asked.questions == 1
    assert not [*answers.iterdir()]


def test_each_try_to_publish_asks_anew(answers: Path) -> None:
    look = LastLook(OPERATION_ID, answers)

    with launcher(answers, "", "its state is success") as asked:
        look.require_task()
        with pytest.raises(CommitError, match="its state is success"):
            look.require_task()

    assert asked.questions == 2


def test_without_an_answer_nothing_is_published(answers: Path) -> None:
    with pytest.raises(CommitError, match="nobody answers") as raised:
        LastLook(OPERATION_ID, answers).require_task(patience=0.1)

    assert raised.value.code is ErrorCode.RUN_GIVEN_UP


def test_who_removed_the_job_s_files_wants_no_snapshot(answers: Path) -> None:
    answers.rmdir()

    with pytest.raises(CommitError, match="nobody answers"):
        LastLook(OPERATION_ID, answers).require_task()


def test_where_nobody_answers_nobody_is_asked() -> None:
    LastLook(OPERATION_ID).require_task()
