"""A table's options for new data files, and how rows reach its sinks. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.iceberg.format.schema import UnknownTypeError, arrow_field, opaque_type
from spark_jobs.connectors.iceberg.format.transforms import VOID, field_type, is_known, is_sortable
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.connectors.iceberg.write.file_layout import (
    NewFileLayout,
    PartitionColumn,
    PartitionFunction,
    SortFunction,
    Spread,
    derived_name,
)
from spark_jobs.contract.properties import STATEMENT
from spark_jobs.contract.request import TableName
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.rows import RESERVED_PREFIX
from spark_jobs.spi.tables import PartitionField
from spark_jobs.spi.writes import DerivedColumns, MergeWrite, RowOrder, SortKey, WriteLayout

_CODEC: Final = "write.parquet.compression-codec"
_LEVEL: Final = "write.parquet.compression-level"
_CODECS: Final = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4",
    "brotli": "brotli",
    "uncompressed": "none",
}
_DATA_PATH: Final = "write.data.path"
# Iceberg's older names of the same.
_FOLDER_PATH: Final = "write.folder-storage.path"
_OBJECT_PATH: Final = "write.object-storage.path"
_SPREADS: Final = "write.object-storage.enabled"
_SPREAD_PARTITIONS: Final = "write.object-storage.partitioned-paths"
_MERGE_ON_READ: Final = "merge-on-read"
_DEFAULT_REWRITE_SHARE: Final = 0.3
_STATEMENTS: Final = ("merge", "update", "delete")
# What a table may say of each kind of statement; the first is the default.
_CHOICES: Final = {
    "mode": ("copy-on-write", _MERGE_ON_READ),
    "isolation-level": ("serializable", "snapshot"),
}
# What properties may be, and properties that a table must not have.
_ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    _CODEC: tuple(_CODECS),
    "write.format.default": ("parquet",),
    **{f"write.{each}.{option}": _CHOICES[option] for each in _STATEMENTS for option in _CHOICES},
}
_NEVER: Final = ("encryption.key-id", "write.location-provider.impl")
_OTHER: Final = "Run this statement with Iceberg's own engines."


def refuse_unwritable(name: TableName, table: PinnedTable) -> None:
    """Refuse tables whose rows cannot be changed correctly here.

    Raises:
        NotSupportedError: the table is refused; gives the reason.
    """
    version, properties = table.metadata.format_version, table.metadata.properties
    if version > 2:
        raise NotSupportedError(
            f"{name} has version {version} of the format, of which tables are only read.", _OTHER
        )
    for option, allowed in _ALLOWED.items():
        value = properties.get(option, allowed[0])
        if value.lower() not in allowed:
            raise NotSupportedError(
                f"{name}: property {option} = {value} is not supported.",
                f"Set it to {' or '.join(allowed)}, or run the statement with Iceberg's engines.",
            )
    for option in _NEVER:
        if option in properties:
            raise NotSupportedError(f"{name}: property {option} is not supported.", _OTHER)
    _refuse_opaque(name, table)
    refuse_spec(name, table, table.metadata.default_spec_id)
    for part in table.specs[table.metadata.default_spec_id]:
        is_usable = part.source is not None and is_known(part.source.type, part.transform)
        if part.transform != VOID and not is_usable:
            raise NotSupportedError(
                f"{name}: its partition field {part.name} ({part.transform}) is not supported.",
                _OTHER,
            )


def _refuse_opaque(name: TableName, table: PinnedTable) -> None:
    """Refuse columns that statements cannot use where their values are needed."""
    numbers = {each.source_id for spec in table.metadata.partition_specs for each in spec.fields}
    for column in table.opaque:
        problem = "partitions are or were made of it" if column.id in numbers else ""
        try:
            arrow_field(column)
        except UnknownTypeError as error:
            problem = f"new files cannot hold values of the type {error} as they are"
        if problem:
            raise NotSupportedError(
                f"{name}: column {column.name} has the type {opaque_type(column.type)}, and "
                f"{problem}, which is not supported.",
                _OTHER,
            )


def refuse_spec(name: TableName, table: PinnedTable, spec_id: int) -> None:
    """Refuse new files of a partition spec that is made of columns which are nested or gone.

    Raises:
        NotSupportedError: the spec is refused; names its field.
    """
    columns = table.metadata.schema().field_ids
    for part, field in zip(
        table.specs[spec_id], table.metadata.specs()[spec_id].fields, strict=True
    ):
        is_gone = field.source_id not in columns
        if is_gone or (part.source is None and part.transform != VOID):
            raise NotSupportedError(
                f"{name}: the partition field {part.name} of some files is of a column that is "
                f"{'gone' if is_gone else 'nested'}, which is not supported.",
                "Rewrite these files with Iceberg's own engines.",
            )


def _compression(table: PinnedTable) -> Compression:
    """The codec of new files."""
    properties = table.metadata.properties
    codec = _CODECS[properties.get(_CODEC, "zstd").lower()]
    level = properties.get(_LEVEL, "1")
    return Compression(codec, int(level) if codec == "zstd" and level.isdecimal() else None)


def statement_of(write: MergeWrite) -> str:
    """Its kind; properties of a table differ by ``merge``, ``update`` and ``delete``."""
    return write.operation.properties.get(STATEMENT, "merge")


def rewrite_share(table: PinnedTable, statement: str, asked: float | None) -> float | None:
    """The share of changed rows above which a file is rewritten; None: always.

    ``statement`` is as in ``statement_of``, ``asked`` its own share.
    """
    # Tables of version 1 have no delete files.
    if _choice(table, statement, "mode") != _MERGE_ON_READ or table.metadata.format_version == 1:
        return None
    return _DEFAULT_REWRITE_SHARE if asked is None else asked


def marks_rows(table: PinnedTable) -> bool:
    """Whether any statement may mark rows."""
    return any(rewrite_share(table, each, None) for each in _STATEMENTS)


def isolation(table: PinnedTable, statement: str) -> str:
    """The isolation of a statement that asks for none: ``serializable`` or ``snapshot``."""
    return _choice(table, statement, "isolation-level")


def _choice(table: PinnedTable, statement: str, option: str) -> str:
    """What the table says of a kind of statement; Iceberg takes it in any case."""
    found: str = table.metadata.properties.get(f"write.{statement}.{option}", _CHOICES[option][0])
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
            each.name,
            field_type(each.kind, each.transform),
            each.source,
            is_computed=each.transform != "identity",
        )
        for each in partition_columns(table)
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
    named = tuple(zip(names, types, strict=True))
    derived = DerivedColumns(tuple(sorted(inputs)), named, PartitionFunction(columns))
    order = row_order(table)
    return WriteLayout(names, names, derived=derived if inputs else None, row_order=order)


def row_order(table: PinnedTable) -> RowOrder | None:
    """The table's sort order; None if it has none, or one that is not supported here."""
    wanted = table.metadata.sort_order_by_id(table.metadata.default_sort_order_id)
    sources = {each.id: each for each in table.columns}
    keys, computed = list[SortKey](), list[PartitionColumn]()
    for field in wanted.fields if wanted else ():
        source, transform = sources.get(field.source_id), str(field.transform)
        if transform == VOID:
            continue
        if source is None or not is_sortable(source.type, transform):
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


def new_file_layout(
    table: PinnedTable, filesystem: pafs.FileSystem, target_file_size: int
) -> NewFileLayout:
    """Everything that executors need to write new files of the table."""
    files = NewFiles(
        filesystem=filesystem,
        schema=pa.schema(arrow_field(each) for each in table.fields),
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
