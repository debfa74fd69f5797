"""A table's options for new data files, and how rows reach its sinks. Driver only."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.format.schema import arrow_field
from spark_jobs.connectors.iceberg.format.transforms import field_type
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.write.file_layout import (
    NewFileLayout,
    PartitionColumn,
    PartitionFunction,
    SortFunction,
    Spread,
    derived_name,
)
from spark_jobs.contract.compaction_order import SortTerm
from spark_jobs.contract.properties import STATEMENT
from spark_jobs.datafiles.parquet.options import CODECS, Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.formats.iceberg.refused_properties import (
    CHOICES,
    CODEC,
    MERGE_ON_READ,
    STATEMENTS,
)
from spark_jobs.formats.iceberg.transforms import VOID, is_sortable
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.tables import PartitionField
from spark_jobs.spi.writes import DerivedColumns, MergeWrite, RowOrder, SortKey, WriteLayout

_LEVEL: Final = "write.parquet.compression-level"
_DATA_PATH: Final = "write.data.path"
# Iceberg's older names of the same.
_FOLDER_PATH: Final = "write.folder-storage.path"
_OBJECT_PATH: Final = "write.object-storage.path"
_SPREADS: Final = "write.object-storage.enabled"
_SPREAD_PARTITIONS: Final = "write.object-storage.partitioned-paths"
_DEFAULT_REWRITE_SHARE: Final = 0.3


def _compression(table: PinnedTable) -> Compression:
    """The codec of new files."""
    properties = table.metadata.properties
    codec = CODECS[properties.get(CODEC, "zstd").lower()]
    level = properties.get(_LEVEL, "1")
    return Compression(codec, int(level) if codec == "zstd" and level.isdecimal() else None)


def statement_of(write: MergeWrite) -> str:
    """Its kind: ``merge``, ``update`` or ``delete``, by which properties of a table differ.

    Statements that replace partitions delete their rows.
    """
    found = write.operation.properties.get(STATEMENT, STATEMENTS[0])
    return found if found in STATEMENTS else "delete"


def rewrite_share(table: PinnedTable, statement: str, asked: float | None) -> float | None:
    """The share of changed rows above which a file is rewritten; None: always.

    ``statement`` is as in ``statement_of``, ``asked`` its own share.
    """
    # Tables of version 1 have no delete files.
    if _choice(table, statement, "mode") != MERGE_ON_READ or table.metadata.format_version == 1:
        return None
    return _DEFAULT_REWRITE_SHARE if asked is None else asked


def marks_rows(table: PinnedTable) -> bool:
    """Whether any statement may mark rows."""
    return any(rewrite_share(table, each, None) for each in STATEMENTS)


def isolation(table: PinnedTable, statement: str) -> str:
    """The isolation of a statement that asks for none: ``serializable`` or ``snapshot``."""
    return _choice(table, statement, "isolation-level")


def _choice(table: PinnedTable, statement: str, option: str) -> str:
    """What the table says of a kind of statement; Iceberg takes it in any case."""
    found: str = table.metadata.properties.get(f"write.{statement}.{option}", CHOICES[option][0])
    return found.lower()


def partition_columns(table: PinnedTable) -> tuple[PartitionColumn, ...]:
    """The fields of the partition spec of new rows."""
    return tuple(
        PartitionColumn(part.id, part.name, part.transform, part.source.name, part.source.type)
        for part in table.specs[table.metadata.default_spec_id]
        if part.source is not None and part.transform != VOID
    )


def partition_fields(table: PinnedTable) -> tuple[PartitionField, ...]:
    """The fields of the partitions of new rows."""
    return tuple(
        PartitionField(
            column.name,
            field_type(column.kind, column.transform),
            column.source,
            is_computed=column.transform != "identity",
        )
        for column in partition_columns(table)
    )


def insert_layout(table: PinnedTable) -> WriteLayout:
    """New rows clustered by partition, and sorted by the table's sort order.

    An UPDATE that assigns a source column of any spec moves the row to another file: that of the
    old one belongs to its own partition.
    """
    columns = partition_columns(table)
    inputs = {
        part.source.name
        for parts in table.specs.values()
        for part in parts
        if part.source is not None and part.transform != VOID
    }
    names = tuple(derived_name(number) for number in range(len(columns)))
    types = [field_type(each.kind, each.transform) for each in columns]
    function = PartitionFunction(columns)
    bits = function.sorted_by
    named = (*zip(names, types, strict=True), *bits.values())
    derived = DerivedColumns(tuple(sorted(inputs)), named, function)
    order_by = tuple(bits[n][0] if n in bits else name for n, name in enumerate(names))
    order = row_order(table)
    return WriteLayout(
        names,
        order_by,
        derived=derived if inputs else None,
        row_order=order,
        # Rows that are sorted, or that differ in the bits of a number, stay with Spark.
        joins_files=order is None and not bits,
    )


def row_order(table: PinnedTable) -> RowOrder | None:
    """The table's sort order; None if it has none, or one that is not supported here."""
    wanted = table.metadata.sort_order_by_id(table.metadata.default_sort_order_id)
    sources = {each.id: each for each in table.columns}
    keys, computed = list[SortKey](), list[PartitionColumn]()
    for field in wanted.fields if wanted else ():
        source, transform = sources.get(field.source_id), str(field.transform)
        if transform == VOID:
            continue
        if source is None or not is_sortable(source.type.name, transform):
            return None
        name = f"{RESERVED_PREFIX}sort_{len(keys)}"
        column = PartitionColumn(field.source_id, name, transform, source.name, source.type)
        if transform == "identity" and not column.is_floating:
            name = source.name
        else:
            computed.append(column)
        nulls_first = field.null_order.value == "nulls-first"
        keys.append(SortKey(name, field.direction.value == "asc", nulls_first))
    inputs = tuple(dict.fromkeys(each.source for each in computed))
    named = tuple((each.name, each.sort_type) for each in computed)
    derived = DerivedColumns(inputs, named, SortFunction(tuple(computed))) if computed else None
    return RowOrder(tuple(keys), derived) if keys else None


def begins_with_order(table: PinnedTable, terms: Sequence[SortTerm]) -> bool:
    """Whether rows that are sorted by ``terms`` are also in the table's sort order."""
    order = table.metadata.sort_order_by_id(table.metadata.default_sort_order_id)
    names = {each.id: each.name for each in table.columns}
    fields = [each for each in (order.fields if order else ()) if str(each.transform) != VOID]
    wanted = [
        SortTerm(
            names.get(sort_field.source_id, ""),
            sort_field.direction.value == "asc",
            sort_field.null_order.value == "nulls-first",
        )
        for sort_field in fields
    ]
    is_plain = all(str(each.transform) == "identity" for each in fields)
    return bool(wanted) and is_plain and wanted == list(terms[: len(wanted)])


def new_file_layout(
    table: PinnedTable, filesystem: pafs.FileSystem, target_file_size: int
) -> NewFileLayout:
    """Everything that executors need to write new files of the table."""
    files = NewFiles(
        filesystem=filesystem,
        schema=pa.schema(arrow_field(each) for each in table.stored_fields),
        target_file_size=target_file_size,
        compression=_compression(table),
    )
    root = table.storage.path(data_location(table))
    columns, rows = partition_columns(table), insert_layout(table)
    return NewFileLayout(files, root, columns, rows, _spread(table))


def data_location(table: PinnedTable) -> str:
    """The folder of new data files."""
    metadata = table.metadata
    names = (_DATA_PATH, *((_OBJECT_PATH,) if _spreads(table) else ()), _FOLDER_PATH)
    named: list[str] = [path for each in names if (path := metadata.properties.get(each))]
    return (*named, f"{metadata.location}/data")[0].rstrip("/")


def folder_of_new_version(root: str, path: str) -> str:
    """Where a new version of the file at ``path`` belongs: beside it, or else in ``root``."""
    folder = posixpath.dirname(path)
    return folder if folder == root or folder.startswith(f"{root}/") else root


def _spreads(table: PinnedTable) -> bool:
    enabled: str = table.metadata.properties.get(_SPREADS, "false")
    return enabled.lower() == "true"


def _spread(table: PinnedTable) -> Spread | None:
    if not _spreads(table):
        return None
    location = table.metadata.location.rstrip("/")
    is_within = data_location(table).startswith(location)
    context = () if is_within else tuple(location.split("/")[-2:])
    partitions: str = table.metadata.properties.get(_SPREAD_PARTITIONS, "true")
    return Spread(context, partitions.lower() == "true")
