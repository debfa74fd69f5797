"""Keeps some of the rows that a dry run would change, old beside new, for the page of its task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import BinaryType, DataType, TimestampType

from spark_jobs.contract import row_checks
from spark_jobs.contract.access_rights import writing_workspace
from spark_jobs.contract.operation_files import preview_path
from spark_jobs.contract.row_preview import (
    MOST_CHARACTERS,
    MOST_COLUMNS,
    PreviewedRow,
    PreviewPlace,
    RowPreview,
    shortened,
)
from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.query.json_values import is_nested
from spark_jobs.engine.runtime.sql_text import named
from spark_jobs.storage.files import replace_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from spark_jobs.engine.changes.changed_rows import ChangeShape
    from spark_jobs.spi.storage import WarehouseStorage

_OPERATIONS: Final = ("update", "delete", "insert")
_UNKNOWN: Final = ("VariantType", "NullType", "CalendarIntervalType")


@dataclass(frozen=True, slots=True)
class RowPreviews:
    """Stores rows of ``changes``, whose old and new rows have the columns of ``shape``."""

    storage: WarehouseStorage
    place: PreviewPlace
    shape: ChangeShape

    def store(self, changes: DataFrame | None) -> None:
        """Store the first rows of each operation; None: nothing would change.

        Raises:
            CatalogError: WORKSPACE_ACCESS_DENIED.
            OSError: the storage refused.
        """
        shown = {name: kind for name, kind in self.shape.types.items() if _has_text(kind)}
        shown = dict(list(shown.items())[:MOST_COLUMNS])
        table = self.shape.table
        found = RowPreview(
            self.place.operation_id,
            self.place.table,
            self.place.catalog,
            tuple(shown),
            tuple(
                column.name
                for column in (*table.columns, *table.opaque_columns)
                if column.name not in shown
            ),
            () if changes is None else tuple(self._rows(changes, shown)),
        )
        path = f"{self.storage.root}/{preview_path(self.place.operation_id)}"
        with writing_workspace():
            replace_file(self.storage.filesystem, path, found.to_json().encode())

    def _rows(self, changes: DataFrame, shown: dict[str, DataType]) -> Iterator[PreviewedRow]:
        columns = [
            row_checks.OPERATION,
            row_checks.CLAUSE,
            *(
                named(_array([_text(row, each, kind) for each, kind in shown.items()]), row)
                for row in (row_checks.OLD, row_checks.NEW)
            ),
            named(_array([_differs(each) for each in shown]), "differs"),
        ]
        for operation in _OPERATIONS:
            of_it = changes.where(f"{row_checks.OPERATION} = '{operation}'")
            for row in of_it.selectExpr(*columns).limit(self.place.rows).collect():
                yield _previewed(operation, row)


def _previewed(operation: Any, row: Row) -> PreviewedRow:
    old, new = (tuple(map(shortened, row[each])) for each in (row_checks.OLD, row_checks.NEW))
    is_update = operation == "update"
    return PreviewedRow(
        operation,
        row[row_checks.CLAUSE],
        None if operation == "insert" else old,
        None if operation == "delete" else new,
        tuple(i for i, each in enumerate(row["differs"]) if each) if is_update else (),
    )


def _has_text(kind: DataType) -> bool:
    return not is_nested(kind) and type(kind).__name__ not in _UNKNOWN


def _array(parts: list[str]) -> str:
    return f"array({', '.join(parts)})"


def _text(row: str, name: str, kind: DataType) -> str:
    """A value as text, of which a character too many tells that it is cut off."""
    value = f"{row}.{quote(name)}"
    if isinstance(kind, BinaryType):
        return f"lower(hex(substring({value}, 1, {MOST_CHARACTERS})))"
    if isinstance(kind, TimestampType):
        epoch, micros = "TIMESTAMP_NTZ'1970-01-01 00:00:00'", "INTERVAL '0.000001' SECOND"
        return f"concat(CAST({epoch} + unix_micros({value}) * {micros} AS STRING), 'Z')"
    return f"substring(CAST({value} AS STRING), 1, {MOST_CHARACTERS + 1})"


def _differs(name: str) -> str:
    old, new = (f"{row}.{quote(name)}" for row in (row_checks.OLD, row_checks.NEW))
    return f"NOT ({old} <=> {new})"
