"""The tables of a case, made and read with pypaimon; views become files that a source names.

Iceberg's are in ``iceberg_tables``.
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon import CatalogFactory, Schema
from pypaimon.schema.data_types import (
    AtomicInteger,
    DataField,
    DataTypeParser,
    PyarrowFieldParser,
    reassign_field_id,
)

from spark_jobs.connectors.paimon.format.types import to_paimon, to_spark
from spark_jobs.contract.request import CatalogSpec, FileSource, SqlSource
from tests.acceptance.cases import BadCaseError, TableCase
from tests.acceptance.values import as_arrow, comparable
from tests.support.paimon_appends import as_compacted
from tests.support.table_kinds import APPEND_COW, TableKind

# Options of tables with a key, and what the kind of table under test decides.
_KEY_OPTIONS = re.compile(
    r"merge-engine|bucket(-key)?|changelog-producer|sequence\..*|fields\..*|rowkind\.field"
    r"|ignore-delete|partial-update\..*|aggregation\..*|first-row\..*|deletion-vectors\..*"
)
# A number, TRUE, FALSE or NULL; or a text, perhaps with its type before it: DATE '2024-02-29'.
_LITERAL = re.compile(
    r"(?P<word>[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?|true|false|null)"
    r"|(?:(?:date|timestamp|timestamp_ntz|timestamp_ltz)\s*)?'(?P<text>(?:[^'\\]|'')*)'",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Look:
    """What can be seen of a table: its latest snapshot, its columns and its rows."""

    snapshot_id: int | None
    columns: tuple[tuple[str, str], ...]
    rows: Counter[str]


class CaseTable(ABC):
    """One table; every look at it opens it anew."""

    @property
    @abstractmethod
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Names and Spark SQL types of the columns, as ``normal_type`` spells them."""

    @property
    @abstractmethod
    def snapshot_id(self) -> int | None:
        """The latest snapshot."""

    @abstractmethod
    def rows(self) -> pa.Table:
        """All rows, as the format's own library reads them."""

    def look(self) -> Look:
        """The table as it is now."""
        return Look(self.snapshot_id, self.columns, comparable(self.rows()))


@dataclass(frozen=True)
class Warehouse:
    """A local warehouse for tables of one kind; every run of a case has a database of its own."""

    path: Path
    kind: TableKind = APPEND_COW
    catalog: Any = field(init=False)

    def __post_init__(self) -> None:
        catalog = CatalogFactory.create({"warehouse": str(self.path)})
        object.__setattr__(self, "catalog", catalog)

    @property
    def spec(self) -> CatalogSpec:
        """The catalog as a request names it."""
        return CatalogSpec("paimon", str(self.path))

    def create(self, database: str, case: TableCase) -> CaseTable:
        """A table with the rows of ``case`` in one commit; its key counts if the kind has one."""
        self.catalog.create_database(database, True)
        name = f"{database}.{case.table}"
        partitions = [key for key in map(identity_column, case.partitioned_by) if key]
        if self.kind.has_key:
            keys = list(case.primary_key)
            options = self._keyed_options(case)
            case = dataclasses.replace(case, not_null=(*case.not_null, *keys))
        else:
            keys = []
            options = _options(case.props) | self._kind_options(case, partitions)
        schema = Schema(fields_of(case), partitions, keys, options)
        self.catalog.create_table(name, schema, False)
        table = PaimonTable(self, name)
        if case.rows:
            table.append(as_arrow(case.rows, table.schema))
        return table

    def _kind_options(self, case: TableCase, partitions: Sequence[str]) -> dict[str, str]:
        """The first column that may decide the bucket does; where there is none, no bucket is."""
        key = bucket_column(case, partitions)
        kind = self.kind if key else dataclasses.replace(self.kind, buckets=None)
        return kind.options(key)

    def _keyed_options(self, case: TableCase) -> dict[str, str]:
        """Those of the case win over those of the kind, but for deletion vectors."""
        if not case.primary_key:
            return _options(case.props)
        given = {
            name: value
            for name, value in case.props.items()
            if not name.startswith("deletion-vectors.")
        }
        return self.kind.options("") | given

    def view(self, database: str, case: TableCase) -> FileSource | SqlSource:
        """A view as the source that an operator's user would name."""
        if case.query is not None:
            return SqlSource(case.table, case.query)
        path = self.path.parent / f"{database}-{case.table}.parquet"
        void = [name for name, kind in case.columns if kind.upper() == "VOID"]
        stored = [(name, "STRING" if name in void else kind) for name, kind in case.columns]
        fields = fields_of(dataclasses.replace(case, columns=stored))
        pq.write_table(as_arrow(case.rows, PyarrowFieldParser.from_paimon_schema(fields)), path)
        if void:  # No file has such columns.
            columns = [f"NULL AS `{name}`" if name in void else f"`{name}`" for name, _ in stored]
            return SqlSource(case.table, f"SELECT {', '.join(columns)} FROM parquet.`{path}`")
        schema = ", ".join(f"`{name}` {kind}" for name, kind in stored)
        return FileSource(case.table, str(path), "parquet", schema=schema)


@dataclass(frozen=True)
class PaimonTable(CaseTable):
    """A table of a ``Warehouse``."""

    warehouse: Warehouse
    name: str

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return PyarrowFieldParser.from_paimon_schema(self._open().fields)

    def append(self, rows: pa.Table) -> None:
        """Add rows in one commit."""
        builder = self._open().new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        try:
            writer.write_arrow(rows)
            messages = writer.prepare_commit()
            if self.warehouse.kind.has_key:
                as_compacted(messages)
            commit.commit(messages)
        finally:
            writer.close()
            commit.close()

    def rows(self) -> pa.Table:
        builder = self._open().new_read_builder()
        splits = builder.new_scan().plan().splits()
        return builder.new_read().to_arrow(splits) if splits else self.schema.empty_table()

    @property
    def snapshot_id(self) -> int | None:
        snapshot = self._open().snapshot_manager().get_latest_snapshot()
        return None if snapshot is None else int(snapshot.id)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return tuple((f.name, to_spark(f.type.to_dict(), f.name)) for f in self._open().fields)

    def _open(self) -> Any:
        return self.warehouse.catalog.get_table(self.name)


def normal_type(spark_type: str) -> str:
    """The one spelling of a type; nested fields may be NULL."""
    return to_spark(to_paimon(spark_type, "", nullable=True), "")


def bucket_column(case: TableCase, partitions: Sequence[str]) -> str:
    """The first column that may decide a bucket; empty if there is none."""
    keys = (
        name
        for name, kind in case.columns
        if name not in partitions and not kind.upper().startswith(("ARRAY", "MAP", "STRUCT"))
    )
    return next(keys, "")


def fields_of(case: TableCase) -> list[DataField]:
    """The columns as Paimon's fields."""
    ids = AtomicInteger(-1)
    fields = []
    for name, spark_type in case.columns:
        kind = to_paimon(spark_type, name, nullable=name not in case.not_null)
        number = ids.increment_and_get()
        native = reassign_field_id(DataTypeParser.parse_data_type(kind), ids)
        default = _default_text(name, case.defaults[name]) if name in case.defaults else None
        fields.append(DataField(number, name, native, None, default))
    return fields


def _default_text(column: str, literal: str) -> str | None:
    """A default as Paimon keeps it: a text that is cast to the column's type, in quotes or not."""
    found = _LITERAL.fullmatch(literal.strip())
    if found is None:
        raise BadCaseError(f"default of {column}: {literal} is no literal; Paimon keeps no other")
    if found["text"] is None:
        return None if found["word"].upper() == "NULL" else found["word"]
    return "'" + found["text"].replace("''", "'") + "'"


def identity_column(transform: str) -> str | None:
    """The column of ``column`` or ``identity(column)``; None for what Paimon does not have."""
    match = re.fullmatch(r"(?:identity\(\s*)?`?(\w+)`?(?:\s*\))?", transform)
    return None if match is None else match[1]


def _options(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if not _KEY_OPTIONS.fullmatch(name)}
