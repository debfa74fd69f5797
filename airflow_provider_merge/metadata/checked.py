"""Checks of what a file of metadata holds, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_provider_merge.storage.failures import unreadable
from spark_jobs.errors import JobError


def whole(value: Any) -> int:
    """A number; raises ValueError for anything else."""
    if type(value) is not int:
        raise ValueError("a number is not valid")
    return value


def number(value: Any) -> int:
    """A number from 0 on; raises ValueError for anything else."""
    if whole(value) < 0:
        raise ValueError("a number is below 0")
    return int(value)


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Within it, whatever a file cannot be read for is METADATA_UNREADABLE.

    fastavro and the codecs raise exceptions of every kind for damaged files.
    """
    try:
        yield
    except (JobError, OSError):
        raise
    except Exception as error:
        raise unreadable(path, f"cannot be read: {repr(error)[:300]}") from error
