"""What sinks tell the commit about the files that they wrote. Runs on executors."""

from __future__ import annotations

from typing import Any

from spark_jobs.connectors.paimon.format.bucket_key import BucketKey
from spark_jobs.connectors.paimon.format.vectors import WrittenIndex
from spark_jobs.connectors.shared.write.merge_sink import file_document, new_file
from spark_jobs.datafiles.parquet.writer import WrittenFile
from spark_jobs.spi.writes import Fragment


def bucket_file_document(written: WrittenFile, place: BucketKey | None) -> dict[str, Any]:
    """The JSON data of a new file; ``place`` None: the place of the file or range it belongs to."""
    document = file_document(written, None if place is None else place.partition)
    return {**document, "bucket": None if place is None else place.bucket}


def new_file_fragment(written: WrittenFile, place: BucketKey) -> Fragment:
    """A file of new rows in ``place``."""
    return new_file(written, bucket_file_document(written, place))


def index_fragment(index: WrittenIndex) -> Fragment:
    """A new index file, and its deletion vectors."""
    return Fragment(
        {"index": index.to_json()},
        bytes_added=index.vector_bytes,
        deletion_vectors_added=len(index.vectors),
    )
