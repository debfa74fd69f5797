"""A table's options for new data files. Driver only."""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.types import atomic_parts, timestamp_precision
from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.paimon.table.refusals import REWRITE_SHARE_OPTION
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.paimon.write.file_layout import NewFileLayout
from spark_jobs.datafiles.parquet.options import CODECS, Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.paths import PartitionKey, PartitionLayout, data_root

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


class NamePrefixes(NamedTuple):
    """How the names of the files of one write begin, and of no other files."""

    data: str
    changelog: str
    indexes: str

    @classmethod
    def of(cls, table: PinnedTable, token: str) -> NamePrefixes:
        """The prefixes by the options ``data-file.prefix`` and ``changelog-file.prefix``."""
        data = table.options.get("data-file.prefix", "data-")
        changelog = table.options.get("changelog-file.prefix", "changelog-")
        return cls(f"{data}{token}-", f"{changelog}{token}-", f"index-{token}-")


def compression(table: PinnedTable) -> Compression:
    """The codec of new files (options ``file.compression``, ``file.compression.zstd-level``).

    Raises:
        NotSupportedError: pyarrow cannot write the codec.
    """
    return _compression(table, "file.compression")


def changelog_compression(table: PinnedTable) -> Compression:
    """The codec of changelog files (``changelog-file.compression``), by default as of others.

    Raises:
        NotSupportedError: pyarrow cannot write the codec.
    """
    option = "changelog-file.compression"
    return _compression(table, option if option in table.options else "file.compression")


def _compression(table: PinnedTable, option: str) -> Compression:
    name = table.options.get(option, "zstd").lower()
    if name not in CODECS:
        raise NotSupportedError(
            f"Option {option} = {name} is not supported.",
            f"Use one of: {', '.join(CODECS)}.",
        )
    level = int(table.options.get("file.compression.zstd-level", "1")) if name == "zstd" else None
    return Compression(CODECS[name], level)


def new_file_layout(
    table: PinnedTable, filesystem: pafs.FileSystem, target_file_size: int
) -> NewFileLayout:
    """Everything that executors need to write new files of the table."""
    types = {column.name: column.type for column in table.schema.columns}
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
        root=data_root(table.path, table.options),
        partitions=PartitionLayout.of(keys, table.options),
        table_path=table.path,
        external=table.external,
        bucketed=table.bucketing.matters,
    )
