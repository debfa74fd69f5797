"""How a catalog may answer a commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spark_jobs.spi.connector import Connector


def answering(
    connector: Connector, monkeypatch: pytest.MonkeyPatch, *answers: Callable[[Any], Any]
) -> list[int]:
    """Let the catalog answer the next commits so; each gets a function that commits for real."""
    opened = connector.writes.catalog.opened  # type: ignore[attr-defined]
    commit, left, calls = opened.commit_table, list(answers), [0]

    def commit_table(*arguments: Any) -> Any:
        calls[0] += 1
        if left:
            return left.pop(0)(lambda: commit(*arguments))
        return commit(*arguments)

    monkeypatch.setattr(opened, "commit_table", commit_table)
    return calls


def lost_answer(commit: Callable[[], Any]) -> Any:
    commit()
    raise ConnectionError("the answer was lost")


def lost_request(commit: Callable[[], Any]) -> Any:
    del commit
    raise ConnectionError("the request was lost")


def refused(commit: Callable[[], Any]) -> Any:
    from pyiceberg.exceptions import CommitFailedException

    del commit
    raise CommitFailedException("another one was faster")
