"""pypaimon's conflicts have no type: each text that we rely on is provoked or found in its code."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from spark_jobs.connectors.paimon import library
from spark_jobs.connectors.paimon.conflicts import CONFLICT_TEXTS, to_job_error
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.connectors.tables import NAME, append, append_with_pypaimon, create


class Unreachable:
    """A publication that must not be reached."""

    def __enter__(self) -> Unreachable:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def commit(self, *_: Any) -> bool:
        raise AssertionError("published")


def message(table: TableHandle, check_from: int | None, *, removed: bool = True) -> Any:
    files = [entry.file for _, entry in table.native.located_entries] if removed else []
    return library.commit_message((), 0, [], files, check_from)


def failure_of_commit(table: TableHandle, *messages: Any) -> RuntimeError:
    current = table.native.table
    with pytest.raises(RuntimeError) as raised:
        library.commit_once(current, Unreachable(), "user", 1, messages, {})
    return raised.value


@pytest.fixture
def table(connector: Connector) -> TableHandle:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    return connector.metadata.load_table(NAME)


def test_a_file_that_was_deleted_meanwhile(connector: Connector, table: TableHandle) -> None:
    from spark_jobs.connectors.paimon.publish import HardLinkStore, Publication

    publication = Publication(HardLinkStore(), f"{table.native.path}/snapshot", 1)
    library.commit_once(table.native.table, publication, "first", 1, [message(table, None)], {})
    assert publication.published

    error = failure_of_commit(table, message(table, None))

    assert "File deletion conflicts detected" in str(error)
    assert to_job_error(error).code is ErrorCode.COMMIT_CONFLICT


def test_a_partition_that_was_changed_since_the_base(
    connector: Connector, table: TableHandle
) -> None:
    append_with_pypaimon(table, [{"id": 2}])

    error = failure_of_commit(table, message(table, 1))

    assert "Overwrite conflict detected" in str(error)
    assert to_job_error(error).code is ErrorCode.COMMIT_CONFLICT


@pytest.mark.parametrize("text", CONFLICT_TEXTS)
def test_every_text_is_one_that_pypaimon_raises_and_is_retryable(text: str) -> None:
    from pypaimon.write.commit import conflict_detection, fixed_bucket_commit_check

    source = inspect.getsource(conflict_detection) + inspect.getsource(fixed_bucket_commit_check)

    assert text in source
    assert to_job_error(RuntimeError(f"{text}: x")).code is ErrorCode.COMMIT_CONFLICT


def test_any_other_text_is_a_failure_of_the_storage() -> None:
    error = to_job_error(RuntimeError("Failed to prepare snapshot: disk full"))

    assert error.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "disk full" in error.message
