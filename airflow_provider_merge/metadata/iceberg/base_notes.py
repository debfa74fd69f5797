"""The notes in a workspace by which operations at work keep snapshots of Iceberg tables."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final

from airflow_provider_merge.storage.failures import reaching, unreadable
from airflow_provider_merge.storage.files import list_names, modified, read_bytes
from spark_jobs.contract.operation_files import FOLDER, base_path, operation_of_base
from spark_jobs.formats.iceberg.holds import Base, operation_at_work

# For so many seconds, the notes are read once for all tables.
_FRESH: Final = 30.0
# In bytes.
_LONGEST: Final = 65_536


@dataclass
class BaseNotes:
    """The notes of the workspace at ``location``, which fsspec opens with ``options``."""

    location: str
    options: Mapping[str, Any] = field(repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)
    _read: tuple[float, Mapping[str, Any]] | None = None

    def at_work(self, table_uuid: object) -> dict[str, Base]:
        """The bases of the operations that may be at work on a table, by their ids.

        Raises:
            CatalogError: METADATA_UNREADABLE: a file is no note; WORKSPACE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
        """
        with self._lock:
            if self._read is None or time.monotonic() > self._read[0] + _FRESH:
                with reaching(self.location, "workspace"):
                    self._read = (time.monotonic(), dict(self._noted()))
            documents = self._read[1]
        bases = {}
        for operation_id, document in documents.items():
            with _reading_note(self._path(operation_id)):
                base = Base.noted(document, table_uuid)
            if base is not None:
                bases[operation_id] = base
        return bases

    def _noted(self) -> Iterator[tuple[str, Any]]:
        """The documents of young notes of all tables, by their operations."""
        now = datetime.now(UTC)
        for name in sorted(list_names(f"{self.location}/{FOLDER}", self.options)):
            if operation_of_base(name) is None:
                continue
            path = f"{self.location}/{FOLDER}/{name}"
            operation_id = operation_at_work(name, modified(path, self.options), now)
            content = operation_id and read_bytes(path, self.options, _LONGEST)
            if operation_id and content:
                with _reading_note(path):
                    yield operation_id, json.loads(content)

    def _path(self, operation_id: str) -> str:
        return f"{self.location}/{base_path(operation_id)}"


@contextmanager
def _reading_note(path: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, RecursionError):
        raise unreadable(path, "is not a note of an operation") from None
