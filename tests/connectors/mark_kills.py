"""Drivers that die at each step of the publication of a mark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from spark_jobs.engine.marks.applied_files import AppliedFiles
from spark_jobs.engine.marks.mark_notes import MarkNotes
from spark_jobs.engine.marks.marks import Marks
from spark_jobs.spi.connector import Connector


class KilledError(BaseException):
    """The driver died."""


@contextmanager
def killed_at(step: str, connector: Connector) -> Iterator[None]:
    """The driver dies at this step of a publication."""
    owner, name = {
        "store": (AppliedFiles, "store"),
        "note": (MarkNotes, "add"),
        "noted": (MarkNotes, "add"),
        "publish": (type(connector.writes), "finish_merge"),
        "published": (type(connector.writes), "finish_merge"),
        "settled": (Marks, "settle"),
    }[step]
    real = getattr(owner, name)

    def dying(*arguments: Any) -> Any:
        if step in ("noted", "published", "settled"):
            real(*arguments)
        raise KilledError(step)

    with patch.object(owner, name, dying):
        yield
