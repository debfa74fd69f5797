"""Files in a table's folders that can be orphans. Runs on executors, too."""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from spark_jobs.connectors.shared.maintenance.removal_notes import FileKind

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class StoredFile(NamedTuple):
    """A file; ``size`` is in bytes, ``stored`` is its mtime in microseconds since 1970."""

    path: str
    kind: FileKind
    size: int
    stored: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def microseconds(moment: datetime) -> int:
    """A time in microseconds since 1970, as in ``StoredFile``."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def orphans_among(
    files: Iterable[StoredFile], needed: Container[str], before: int
) -> list[StoredFile]:
    """The files that were stored ``before`` and whose names are not ``needed``.

    Compares only file names, because other writers may spell folders differently. Writers give
    each file a name of its own.
    """
    return [each for each in files if each.stored < before and each.name not in needed]
