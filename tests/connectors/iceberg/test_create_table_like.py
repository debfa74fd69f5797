"""CREATE TABLE LIKE: the version counts, and what it does not have is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.altering import failure
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog

_LIKE: Final = CreateTableSpec(like=str(NAME))
_NEW: Final = TableName("db", "new")


@pytest.fixture
def connector(tmp_path: Path) -> Connector:
    catalog = PlainCatalog(tmp_path)
    catalog.library()
    return catalog.open()


def create(
    connector: Connector, version: str, *columns: ColumnSpec, name: TableName = NAME
) -> None:
    spec = CreateTableSpec(columns, table_options={"format-version": version})
    connector.metadata.create_table(name, spec)


def exists(connector: Connector, name: TableName) -> bool:
    return connector.metadata._catalog.load(name) is not None  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_default_is_not_put_into_an_older_version(connector: Connector, version: str) -> None:
    create(connector, "3", ColumnSpec("id", "INT"), ColumnSpec("s", "STRING", default="'new'"))
    older = replace(_LIKE, table_options={"format-version": version})

    error = failure(lambda: connector.metadata.create_table(_NEW, older))

    assert error.code is ErrorCode.NOT_SUPPORTED
    assert "column s has a default" in str(error)
    assert not exists(connector, _NEW)
    assert connector.metadata.create_table(_NEW, _LIKE)


def test_another_version_may_be_asked_for(connector: Connector) -> None:
    create(connector, "3", ColumnSpec("id", "INT"))
    older = replace(_LIKE, table_options={"format-version": "2"})

    assert connector.metadata.create_table(_NEW, older)
    assert not connector.metadata.create_table(_NEW, older)


def test_a_table_of_another_version_differs(connector: Connector) -> None:
    create(connector, "3", ColumnSpec("id", "INT"))
    create(connector, "2", ColumnSpec("id", "INT"), name=_NEW)

    error = failure(lambda: connector.metadata.create_table(_NEW, _LIKE))

    assert error.code is ErrorCode.TABLE_DIFFERS
    assert "format-version is '2', not '3'" in str(error)
