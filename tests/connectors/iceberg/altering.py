"""A table to alter, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from spark_jobs.contract.alter_table import (
    AlterTableSpec,
    TableChange,
)
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import JobError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog

SPEC = CreateTableSpec(
    columns=(
        ColumnSpec("id", "INT", nullable=False),
        ColumnSpec("s", "STRING"),
        ColumnSpec("a", "STRUCT<x: INT, y: ARRAY<STRUCT<q: FLOAT>>>"),
        ColumnSpec("ts", "TIMESTAMP"),
        ColumnSpec("d", "DECIMAL(5, 2)"),
    ),
    partition_keys=("day(ts)",),
)


class Note:
    """What a try leaves for the next one."""

    def __init__(self) -> None:
        self.found: str | None = None

    def read(self) -> Mapping[str, Any] | None:
        return None if self.found is None else json.loads(self.found)

    def write(self, change: Mapping[str, Any]) -> None:
        self.found = json.dumps(change)

    def remove(self) -> None:
        self.found = None


def alter(
    connector: Connector, *changes: TableChange, dry_run: bool = False, note: Any = None
) -> list[tuple[str, str | None, str | None]]:
    assert connector.alterations is not None
    report = connector.alterations.alter_table(
        NAME, AlterTableSpec(changes), dry_run=dry_run, note=note or Note()
    )
    return [(each.what, each.before, each.after) for each in report.parts]


def table(catalog: PlainCatalog) -> Table:
    return catalog.library().load_table(("db", "t"))


def columns(catalog: PlainCatalog) -> list[str]:
    return [each.name for each in table(catalog).schema().fields]


def failure(action: Callable[[], object]) -> JobError:
    with pytest.raises(JobError) as caught:
        action()
    return caught.value


def made(folder: Path) -> PlainCatalog:
    """A catalog with the table ``SPEC``."""
    catalog = PlainCatalog(folder)
    catalog.library()
    catalog.open().metadata.create_table(NAME, SPEC)
    return catalog
