"""What sinks tell the commit about the files that they wrote. Runs on executors."""

from __future__ import annotations

from typing import Any

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.vectors import WrittenIndex
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.datafiles.values import encode_value
from spark_jobs.spi.writes import Fragment


def file_document(written: WrittenFile, place: BucketKey | None) -> dict[str, Any]:
    """The JSON data of a new file; ``place`` None: the place of the file or range it belongs to."""
    values = None if place is None else [encode_value(value) for value in place.partition]
    return {
        "path": written.path,
        "size": written.size,
        "rows": written.rows,
        "partition": values,
        "bucket": None if place is None else place.bucket,
        "statistics": {name: each.to_json() for name, each in written.statistics.items()},
    }


def new_file_fragment(written: WrittenFile, place: BucketKey) -> Fragment:
    """A file of new rows in ``place``."""
    document = {"removed": None, "added": file_document(written, place)}
    return Fragment(document, files_added=1, bytes_added=written.size)


def index_fragment(index: WrittenIndex) -> Fragment:
    """A new index file, and its deletion vectors."""
    return Fragment(
        {"index": index.to_json()},
        bytes_added=index.vector_bytes,
        deletion_vectors_added=len(index.vectors),
    )
