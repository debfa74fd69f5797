"""Targets as real Paimon tables, written and read with pypaimon, never with this project."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon import CatalogFactory, Schema

from tests.oracle.expressions import Row
from tests.oracle.merge import TableColumn
from tests.property.cases import Table
from tests.support.paimon_appends import appends_to_null_partitions, as_compacted
from tests.support.paimon_vectors import live_indexes
from tests.support.table_kinds import APPEND_COW, TableKind

_ARROW = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "DATE": pa.date32(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "DECIMAL(18, 2)": pa.decimal128(18, 2),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
DATABASE = "db"
# A column that statements join on, and sometimes assign: then rows change their bucket.
BUCKET_KEY = "id"


def arrow_table(columns: Sequence[TableColumn], rows: Sequence[Row]) -> pa.Table:
    """Rows as Arrow, with the columns' types and nullability."""
    fields = [pa.field(column.name, _ARROW[column.type], column.nullable) for column in columns]
    return pa.Table.from_pylist(list(rows), schema=pa.schema(fields))


def _options(table: Table) -> dict[str, str]:
    options = table.kind.options(BUCKET_KEY)
    if table.statistics:
        options["metadata.stats-mode"] = "full"
    if table.rewrite_share is not None:
        options["merge.deletion-vectors.rewrite-share"] = str(table.rewrite_share)
    return options


def _is_compacted(table: Table) -> bool:
    return table.kind.has_key and table.kind.marks_rows


@dataclass
class Warehouse:
    """A local warehouse in which every example gets a table of its own."""

    path: Path
    tables: int = 0
    catalog: Any = field(init=False)

    def __post_init__(self) -> None:
        self.catalog = CatalogFactory.create({"warehouse": str(self.path)})
        self.catalog.create_database(DATABASE, True)

    def new_name(self) -> str:
        """A name that no table has."""
        self.tables += 1
        return f"t{self.tables}"

    def create(self, table: Table) -> PaimonTable:
        """A new table with the rows of ``table``, one commit after another."""
        name = self.new_name()
        schema = Schema.from_pyarrow_schema(
            arrow_table(table.columns, []).schema,
            partition_keys=[table.partition] if table.partition else [],
            primary_keys=[column.name for column in table.columns if column.is_key],
            options=_options(table),
        )
        self.catalog.create_table(f"{DATABASE}.{name}", schema, False)
        created = PaimonTable(self, name, table.columns, table.kind, _is_compacted(table))
        for rows in table.commits:
            created.append(rows, table.row_group_size)
        return created


@dataclass(frozen=True)
class PaimonTable:
    """One table; every look at it opens it anew.

    ``is_compacted``: new files of a table with a primary key are put where all readers see them.
    """

    warehouse: Warehouse
    name: str
    columns: tuple[TableColumn, ...]
    kind: TableKind = APPEND_COW
    is_compacted: bool = False

    @property
    def full_name(self) -> str:
        """With the database."""
        return f"{DATABASE}.{self.name}"

    def append(self, rows: Sequence[Row], row_group_size: int) -> None:
        """One commit; pypaimon has no option for row groups, so its file writer gets told."""
        table = self._open()
        write_parquet = functools.partial(
            table.file_io.write_parquet, row_group_size=row_group_size
        )
        table.file_io.write_parquet = write_parquet
        builder = table.new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        try:
            with appends_to_null_partitions():
                writer.write_arrow(arrow_table(self.columns, rows))
            messages = writer.prepare_commit()
            if self.is_compacted:
                as_compacted(messages)
            commit.commit(messages)
        finally:
            writer.close()
            commit.close()

    def rows(self, *more: str) -> list[dict[str, Any]]:
        """All rows as pypaimon reads them; ``more``: their ids, of data evolution."""
        builder = self._open().new_read_builder()
        if more:
            builder = builder.with_projection([*(each.name for each in self.columns), *more])
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        return found.to_pylist()

    def snapshot_id(self) -> int | None:
        """The latest snapshot."""
        snapshot = self._open().snapshot_manager().get_latest_snapshot()
        return None if snapshot is None else snapshot.id

    def parent_id(self) -> int | None:
        """The snapshot before it."""
        return (self.snapshot_id() or 0) - 1 or None

    def next_row_id(self) -> int:
        """The first id that no row has had."""
        snapshot = self._open().snapshot_manager().get_latest_snapshot()
        return 0 if snapshot is None else int(snapshot.next_row_id)

    def files(self) -> set[Path]:
        """All data files in the table's folder, live or not."""
        return set(Path(self._open().table_path).rglob("*.parquet"))

    def index_files(self) -> set[Path]:
        """All index files in the table's folder, live or not."""
        return set(Path(self._open().table_path).rglob("index/index-*"))

    def live_index_files(self) -> set[Path]:
        """Those of the latest snapshot."""
        return live_indexes(self._open())

    def row_groups(self) -> list[int]:
        """Number of row groups of each data file."""
        return [pq.ParquetFile(path).metadata.num_row_groups for path in self.files()]

    def _open(self) -> Any:
        return self.warehouse.catalog.get_table(self.full_name)
