"""A table's options for new data files. Driver only."""

from __future__ import annotations

from typing import Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.buckets import BucketFunction
from spark_jobs.connectors.paimon.format.partition_path import PartitionKey, PartitionLayout
from spark_jobs.connectors.paimon.format.types import atomic_parts, timestamp_precision
from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.paimon.table.refusals import REWRITE_SHARE_OPTION
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.paimon.write.new_rows import NewFileLayout
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.errors import NotSupportedError

_CODECS: Final = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4",
    "brotli": "brotli",
    "none": "none",
    "uncompressed": "none",
}


_DEFAULT_REWRITE_SHARE: Final = 0.3


def rewrite_share(table: PinnedTable, asked: float | None) -> float | None:
    """The share of deleted rows above which a file is rewritten; None: always.

    ``asked`` is the statement's own share, which takes precedence over the table's option and the
    default.
    """
    if not table.marks_rows:
        return None
    if asked is not None:
        return asked
    return float(table.options.get(REWRITE_SHARE_OPTION, _DEFAULT_REWRITE_SHARE))


def data_file_prefix(table: PinnedTable) -> str:
    """The prefix of data file names (option ``data-file.prefix``)."""
    return table.options.get("data-file.prefix", "data-")


def data_root(table: PinnedTable) -> str:
    """The parent directory of the partitions (option ``data-file.path-directory``)."""
    directory = table.options.get("data-file.path-directory", "").strip("/")
    return f"{table.path}/{directory}" if directory else table.path


def compression(table: PinnedTable) -> Compression:
    """The codec of new files (options ``file.compression``, ``file.compression.zstd-level``).

    Raises:
        NotSupportedError: pyarrow cannot write the codec.
    """
    name = table.options.get("file.compression", "zstd").lower()
    if name not in _CODECS:
        raise NotSupportedError(
            f"Option file.compression = {name} is not supported.",
            f"Use one of: {', '.join(_CODECS)}.",
        )
    level = int(table.options.get("file.compression.zstd-level", "1")) if name == "zstd" else None
    return Compression(_CODECS[name], level)


def new_file_layout(
    table: PinnedTable, filesystem: pafs.FileSystem, target_file_size: int
) -> NewFileLayout:
    """Everything that executors need to write new files of the table."""
    types = {column.name: column.type for column in table.schema.columns}
    legacy = table.options.get("partition.legacy-name", "true").lower() == "true"
    keys = [
        PartitionKey(k, timestamp_precision(types[k]), single=atomic_parts(types[k])[0] == "FLOAT")
        for k in table.schema.partition_keys
    ]
    return NewFileLayout(
        files=NewFiles(
            filesystem=filesystem,
            schema=table_schema.arrow_schema(table.table),
            target_file_size=target_file_size,
            compression=compression(table),
        ),
        root=data_root(table),
        partitions=PartitionLayout(
            keys=tuple(keys),
            default_name=table.options.get("partition.default-name", "__DEFAULT_PARTITION__"),
            legacy_names=legacy,
        ),
        table_path=table.path,
        external=table.external,
        bucketed=table.buckets is not None,
    )


def bucket_function(table: PinnedTable, buckets: int) -> BucketFunction:
    """The function with which executors compute the bucket of a row."""
    schema = table_schema.arrow_schema(table.table)
    return BucketFunction(tuple(schema.field(name) for name in table.schema.bucket_key), buckets)
