"""What tasks get to compact parts of a table. Never imports a table library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow.fs as pafs

from spark_jobs.spi.writes import Fragment
from spark_jobs.storage.files import remove_file


class Compactor(Protocol):
    """Compacts the parts of one kind of table. Picklable."""

    def compact(self, native: Any, task_key: str) -> Sequence[Fragment]:
        """As ``PartCompactor.compact``."""
        ...


@dataclass(frozen=True, slots=True)
class PaimonPartCompactor:
    """Implements ``PartCompactor``; the names of all new files begin with one of ``prefixes``."""

    real: Compactor
    filesystem: pafs.FileSystem
    prefixes: tuple[str, ...]

    def compact(self, native: Any, task_key: str) -> Sequence[Fragment]:
        """Compact a part."""
        return self.real.compact(native, task_key)

    def discard(self, fragments: Sequence[Fragment]) -> None:
        """Remove the new files of fragments."""
        remove_new_files(self.filesystem, fragments)


def remove_new_files(filesystem: pafs.FileSystem, fragments: Sequence[Fragment]) -> None:
    """Remove the data files and changelog files of fragments."""
    for fragment in fragments:
        compacted = fragment.document["compacted"]
        for file in (*compacted["added"], *compacted["changelog"]):
            remove_file(filesystem, _path(file))


def _path(file: Mapping[str, Any]) -> str:
    return str(file["run"]["path"] if "run" in file else file["path"])
