"""The tables of a case as Iceberg tables, made and read with pyiceberg."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pypaimon.schema.data_types import PyarrowFieldParser

from spark_jobs.connectors.iceberg.format.schema import spark_type
from spark_jobs.connectors.iceberg.table.pinned_table import schema_fields
from spark_jobs.contract.request import CatalogSpec, TableName
from tests.acceptance.cases import BadCaseError, TableCase
from tests.acceptance.tables import (
    CaseTable,
    Warehouse,
    bucket_column,
    fields_of,
    identity_column,
    normal_type,
)
from tests.acceptance.values import as_arrow
from tests.support.iceberg_equality import delete_by_value, live_rows
from tests.support.iceberg_files import (
    catalog_spec,
    open_catalog,
    rows_of,
    transforms_by_value,
)
from tests.support.iceberg_version_3 import give_ids, upgrade

_NUMBERED = re.compile(r"(\w+)\(\s*(\d+)\s*,\s*`?(\w+)`?\s*\)")
_PLAIN = re.compile(r"(\w+?)s?\(\s*`?(\w+)`?\s*\)")


@dataclass(frozen=True)
class IcebergWarehouse(Warehouse):
    """A local warehouse with a SQL catalog on a file.

    Of kinds with a transform, tables without partitions are partitioned by it.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "catalog", open_catalog(self.path))

    @property
    def spec(self) -> CatalogSpec:
        return catalog_spec(self.path)

    def create(self, database: str, case: TableCase) -> CaseTable:
        if case.defaults:
            raise BadCaseError(f"{case.table} has defaults, which tables of version 2 do not have")
        self.catalog.create_namespace_if_not_exists(database)
        fields = PyarrowFieldParser.from_paimon_schema(fields_of(case))
        mode = "merge-on-read" if self.kind.marks_rows else "copy-on-write"
        properties = {f"write.{each}.mode": mode for each in ("merge", "update", "delete")}
        made = self.catalog.create_table((database, case.table), fields, properties=properties)
        with made.update_spec() as spec:
            for column, transform in self._partition(case):
                spec.add_field(column, transform)
        if case.rows:
            rows = as_arrow(case.rows, made.schema().as_arrow())
            with transforms_by_value():
                made.append(rows)
                if self.kind.deletes_by_value and delete_by_value(
                    self.spec, TableName(database, case.table), rows
                ):
                    made.refresh().append(rows)
        if self.kind.version == 3:
            upgrade(self.catalog.load_table((database, case.table)))
            give_ids(self.spec, TableName(database, case.table))
        return IcebergTable(self, (database, case.table))

    def _partition(self, case: TableCase) -> list[tuple[str, str]]:
        """The source columns and transforms of a table."""
        key = bucket_column(case, ()) if self.kind.transform and not case.partitioned_by else ""
        return [(key, self.kind.transform)] if key else list(map(_field, case.partitioned_by))


@dataclass(frozen=True)
class IcebergTable(CaseTable):
    """A table of an ``IcebergWarehouse``."""

    warehouse: IcebergWarehouse
    identifier: tuple[str, str]

    def rows(self) -> pa.Table:
        table = self._open()
        read = live_rows if self.warehouse.kind.deletes_by_value else rows_of
        return pa.Table.from_pylist(read(table), schema=table.schema().as_arrow())

    @property
    def snapshot_id(self) -> int | None:
        snapshot = self._open().current_snapshot()
        return None if snapshot is None else int(snapshot.snapshot_id)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        fields = schema_fields(self._open().schema())
        return tuple((each.name, normal_type(spark_type(each.type))) for each in fields)

    def _open(self) -> Any:
        return self.warehouse.catalog.load_table(self.identifier)


def _field(text: str) -> tuple[str, str]:
    """The column and the transform of ``dt``, ``days(at)``, ``bucket(8, id)``."""
    column = identity_column(text)
    if column is not None:
        return column, "identity"
    if found := _NUMBERED.fullmatch(text):
        return found[3], f"{found[1]}[{found[2]}]"
    if found := _PLAIN.fullmatch(text):
        return found[2], found[1]
    raise BadCaseError(f"partition {text} is not known")
