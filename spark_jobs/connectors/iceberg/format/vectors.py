"""Writing deletion vectors: several in one Puffin file. Runs on executors.

Follows the Puffin specification and its "deletion-vector-v1 blob type".
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.format.deletes import POSITION_ID, VECTOR_MAGIC
from spark_jobs.datafiles.file_changes import Positions
from spark_jobs.datafiles.roaring import bitmap_bytes_64, frame
from spark_jobs.storage.files import make_folder

_MAGIC: Final = b"PFA1"
_CREATOR: Final = "airflow-provider-merge"


class StoredVector(NamedTuple):
    """A vector in the Puffin file ``path`` of ``size`` bytes; ``rows`` are how many it marks."""

    path: str
    size: int
    offset: int
    length: int
    rows: int


class VectorWriter:
    """Writes vectors to one file, whose path is asked for in the end."""

    def __init__(self, filesystem: pafs.FileSystem, new_path: Callable[[], str]) -> None:
        self._filesystem = filesystem
        self._new_path = new_path
        self._parts = [_MAGIC]
        self._size = len(_MAGIC)
        self._blobs: list[dict[str, object]] = []
        self._places: list[tuple[int, int, int]] = []

    def add(self, location: str, positions: Positions) -> int:
        """Take the deleted rows (ascending) of a data file; the size of their vector in bytes."""
        vector = frame(VECTOR_MAGIC + bitmap_bytes_64(positions))
        properties = {"referenced-data-file": location, "cardinality": str(len(positions))}
        self._blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [POSITION_ID],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": self._size,
                "length": len(vector),
                "properties": properties,
            }
        )
        self._places.append((self._size, len(vector), len(positions)))
        self._parts.append(vector)
        self._size += len(vector)
        return len(vector)

    def finish(self) -> list[StoredVector]:
        """Write the file, if there are vectors; where each of them is, in order."""
        if not self._places:
            return []
        document = {"blobs": self._blobs, "properties": {"created-by": _CREATOR}}
        footer = json.dumps(document).encode()
        end = (_MAGIC, footer, struct.pack("<i", len(footer)), bytes(4), _MAGIC)
        path, content = self._new_path(), b"".join((*self._parts, *end))
        make_folder(self._filesystem, path.rpartition("/")[0])
        with self._filesystem.open_output_stream(path) as stream:
            stream.write(content)
        return [StoredVector(path, len(content), *place) for place in self._places]
