"""Writing deletion vectors, each in a Puffin file of its own. Runs on executors.

Follows the Puffin specification and its "deletion-vector-v1 blob type". A file never has a second
vector: once one of the two has been replaced, an expiry of Iceberg's Java
(``IncrementalFileCleanup``, 1.12) removes their file, which the other one still needs.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Final, NamedTuple

import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.format.deletes import (
    POSITION_ID,
    VECTOR_MAGIC,
    write_deletes,
)
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


def write_vector(
    filesystem: pafs.FileSystem, path: str, location: str, positions: Positions
) -> StoredVector:
    """Write the file ``path`` with the deleted rows (ascending) of the data file ``location``."""
    vector = frame(VECTOR_MAGIC + bitmap_bytes_64(positions))
    blob = {
        "type": "deletion-vector-v1",
        "fields": [POSITION_ID],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": len(_MAGIC),
        "length": len(vector),
        "properties": {"referenced-data-file": location, "cardinality": str(len(positions))},
    }
    document = {"blobs": [blob], "properties": {"created-by": _CREATOR}}
    footer = json.dumps(document).encode()
    end = (_MAGIC, footer, struct.pack("<i", len(footer)), bytes(4), _MAGIC)
    content = b"".join((_MAGIC, vector, *end))
    make_folder(filesystem, path.rpartition("/")[0])
    with filesystem.open_output_stream(path) as stream:
        stream.write(content)
    return StoredVector(path, len(content), len(_MAGIC), len(vector), len(positions))


def stored_deletes(
    filesystem: pafs.FileSystem,
    path: str,
    location: str,
    positions: Positions,
    *,
    as_vector: bool,
) -> dict[str, Any]:
    """Write the deleted rows (ascending) of a data file: a vector, or a file of position deletes.

    The fields of a ``StoredVector``, those of the place within the file for a vector alone.
    """
    if as_vector:
        return write_vector(filesystem, path, location, positions)._asdict()
    size = write_deletes(filesystem, path, location, positions)
    return {"path": path, "size": size, "rows": len(positions)}
