"""How a table's columns are found in files of its former schemas. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spark_jobs.connectors.paimon.format.schema_history import mappings
from spark_jobs.connectors.paimon.library import table_schema
from spark_jobs.connectors.paimon.library.table_schema import PaimonSchema
from spark_jobs.connectors.paimon.table.row_ranges import FileColumns
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_formats import is_parquet


@dataclass(frozen=True)
class ColumnsInFiles:
    """The columns of ``schema``, that of pypaimon's ``table``, by the schemas of files."""

    table: Any
    schema: PaimonSchema = field(repr=False)
    _columns_in: dict[int, tuple[FieldMapping, ...] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def file_columns(self) -> FileColumns:
        """Which of the table's columns each data file holds."""
        return FileColumns(self.schema.columns, self.mapping_of)

    def mapped_schema(self, entry: Any) -> int | None:
        """The key in ``mappings`` of a data file; None: it has the table's columns."""
        return None if self.mapping_of(entry) is None else int(entry.file.schema_id)

    def mapping_of(self, entry: Any) -> tuple[FieldMapping, ...] | None:
        """How the columns are found in a data file; None: it has the table's columns.

        Raises:
            ChangedTypeError: the type of a column was changed otherwise than by widening.
            FileNotFoundError: the file's schema does not exist.
        """
        if not is_parquet(entry.file.file_name):
            return self.columns_in(entry.file.schema_id) or self._same_columns
        return self.columns_in(entry.file.schema_id)

    @cached_property
    def _same_columns(self) -> tuple[FieldMapping, ...]:
        return self._mappings_from(self.table.table_schema.fields)

    def columns_in(self, schema_id: int) -> tuple[FieldMapping, ...] | None:
        """How the columns are found in files of a schema; None: as in those of today's schema.

        Raises:
            ChangedTypeError: the type of a column was changed otherwise than by widening.
            FileNotFoundError: there is no such schema.
        """
        if schema_id not in self._columns_in:
            self._columns_in[schema_id] = self._columns_of(schema_id)
        return self._columns_in[schema_id]

    def _columns_of(self, schema_id: int) -> tuple[FieldMapping, ...] | None:
        if schema_id == table_schema.schema_id(self.table):
            return None
        old = table_schema.columns_of(self.table, schema_id)
        return None if old is None else self._mappings_from(old)

    def _mappings_from(self, old: Sequence[Any]) -> tuple[FieldMapping, ...]:
        now = table_schema.schema_fields(self.table.table_schema.fields)
        return mappings(table_schema.schema_fields(old), now)
