"""Attempts to commit beside other writers, and what became of a snapshot that was not stored."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable

import pytest

from spark_jobs.connectors.shared.commit.commit_loop import (
    before_publication,
    publish_once,
    store_once,
    until_committed,
)
from spark_jobs.errors import CommitError, ErrorCode, InternalError, JobError


class Store:
    """Fails as often as there are ``failures``, then answers; ``calls`` counts."""

    def __init__(self, *failures: OSError, answer: bool = True) -> None:
        self._failures = list(failures)
        self._answer = answer
        self.calls = 0

    def __call__(self) -> bool:
        self.calls += 1
        if self._failures:
            raise self._failures.pop(0)
        return self._answer


def never() -> bool | None:
    raise AssertionError("nobody asked for this")


def of(owner: bool | None) -> Callable[[], bool | None]:
    """A look at the snapshot's id: it is this writer's, another one's, or nobody's."""
    return lambda: owner


def test_the_first_attempt_that_succeeds_is_the_answer() -> None:
    numbers: list[int] = []

    def attempt(number: int) -> str | None:
        numbers.append(number)
        return "snapshot 7" if number == 3 else None

    assert until_committed(attempt) == "snapshot 7"
    assert numbers == [1, 2, 3]


def test_an_attempt_that_fails_is_the_last_one() -> None:
    numbers: list[int] = []

    def attempt(number: int) -> str | None:
        numbers.append(number)
        raise CommitError(ErrorCode.COMMIT_CONFLICT, "in the way", "")

    with pytest.raises(CommitError, match="in the way"):
        until_committed(attempt)
    assert numbers == [1]


def test_a_failure_before_the_publication_says_that_nothing_was_published() -> None:
    with (
        pytest.raises(InternalError, match="could not be prepared: disk full") as raised,
        before_publication(),
    ):
        raise OSError("disk full")

    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "Nothing was published" in raised.value.remedy


def test_an_error_of_the_job_before_the_publication_stays_what_it_is() -> None:
    with pytest.raises(CommitError, match="in the way"), before_publication():
        raise CommitError(ErrorCode.COMMIT_CONFLICT, "in the way", "")


@pytest.mark.parametrize("answer", [True, False])
def test_an_answer_of_the_store_is_believed(answer: bool) -> None:
    store = Store(answer=answer)

    assert store_once("snapshot 3", store, never) is answer
    assert store.calls == 1


def test_a_snapshot_is_stored_again_after_a_failure() -> None:
    store = Store(OSError("reset"), OSError("reset"))

    assert store_once("snapshot 3", store, never)
    assert store.calls == 3


@pytest.mark.parametrize("owner", [True, False])
def test_after_a_failure_the_owner_of_the_id_tells_what_became_of_it(owner: bool) -> None:
    assert store_once("snapshot 3", Store(OSError("reset"), answer=False), of(owner)) is owner


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (OSError("disk full"), ErrorCode.STORAGE_UNAVAILABLE),
        (TimeoutError("no answer"), ErrorCode.COMMIT_OUTCOME_UNKNOWN),
        (ConnectionError("reset by peer"), ErrorCode.COMMIT_OUTCOME_UNKNOWN),
    ],
)
def test_a_snapshot_that_is_not_there_may_still_appear_if_there_was_no_answer(
    failure: OSError, code: ErrorCode
) -> None:
    with pytest.raises(JobError, match=str(failure)) as raised:
        store_once("snapshot 3", Store(failure, answer=False), of(None))

    assert raised.value.code is code


def test_an_answer_that_was_lost_is_not_forgotten_over_a_later_refusal() -> None:
    lost, refused = TimeoutError("no answer"), PermissionError(errno.EACCES, "not allowed")

    with pytest.raises(CommitError, match="no answer") as raised:
        store_once("snapshot 3", Store(lost, refused, answer=False), of(None))

    assert raised.value.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN


def test_an_owner_that_can_not_be_looked_up_is_an_unknown_outcome() -> None:
    def unreachable() -> bool | None:
        raise OSError("unreachable")

    with pytest.raises(CommitError) as raised:
        store_once("snapshot 3", Store(OSError("reset"), answer=False), unreachable)

    assert raised.value.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN


@pytest.mark.parametrize(
    ("store", "owner", "discarded"),
    [
        (Store(), None, 0),
        (Store(answer=False), None, 1),
        (Store(OSError(), OSError(), OSError()), None, 1),
        (Store(TimeoutError(), TimeoutError(), TimeoutError()), None, 0),
    ],
    ids=["stored", "of another", "failed", "unknown"],
)
def test_files_go_exactly_if_they_are_certainly_not_published(
    store: Store, owner: bool | None, discarded: int
) -> None:
    gone: list[str] = []
    with contextlib.suppress(JobError):
        publish_once("snapshot 7", lambda: None, store, of(owner), lambda: gone.append("files"))

    assert len(gone) == discarded


def test_what_is_not_wanted_any_more_is_not_stored() -> None:
    def refuse() -> None:
        raise CommitError(ErrorCode.RUN_GIVEN_UP, "given up", "")

    store, gone = Store(), list[str]()
    with pytest.raises(CommitError, match="given up"):
        publish_once("snapshot 7", refuse, store, never, lambda: gone.append("files"))

    assert (store.calls, gone) == (0, ["files"])
