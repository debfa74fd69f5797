"""The executor half of a rewrite of position deletes: one file, or vector, for each data file.

Never imports a table library. Memory: the positions that the files of a part have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.format.deletes import positions_by_file
from spark_jobs.connectors.iceberg.format.vectors import stored_deletes
from spark_jobs.spi.writes import Fragment


class MarkedFile(NamedTuple):
    """A data file; ``location`` is how deletes name it, ``ordinal`` is as in ``PartFile``."""

    ordinal: int
    location: str
    row_count: int
    folder: str


@dataclass(frozen=True, slots=True)
class DeletesPart:
    """Paths of all position deletes of ``files``, which are about no other live data file.

    ``size`` is theirs in bytes. ``writes_vectors``: they become vectors.
    """

    files: tuple[MarkedFile, ...]
    deletes: tuple[str, ...]
    size: int
    writes_vectors: bool = False


def rewrite_deletes(
    filesystem: pafs.FileSystem, part: DeletesPart, new_path: Callable[[str, str], str]
) -> Fragment:
    """Write the deletes of a part anew; ``new_path`` takes a folder and the ending of a name.

    Raises:
        CatalogError: DATA_FILE_UNREADABLE, METADATA_UNREADABLE: a file is missing, damaged or not
            about the data files' rows.
    """
    counts = {each.location: each.row_count for each in part.files}
    marked_positions = positions_by_file(filesystem, part.deletes, counts)
    marked = [each for each in part.files if each.location in marked_positions]
    added = list[dict[str, Any]]()
    for file in marked:
        path = new_path(file.folder, "puffin" if part.writes_vectors else "parquet")
        place, positions = file.location, marked_positions[file.location]
        stored = stored_deletes(filesystem, path, place, positions, as_vector=part.writes_vectors)
        added.append({"file": file.ordinal, **stored})
    return Fragment(
        {"compacted": {"files": [each.ordinal for each in part.files], "added": added}},
        bytes_added=sum(each["size"] for each in added),
        bytes_removed=part.size,
        deletion_vectors_added=len(added),
    )
