"""A merge into files of five schemas does as much work as one into files of a single schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.statements import Assignment, InsertAllAction, MergeCase, UpdateAction
from tests.judge.merging import merge
from tests.judge.tables import Warehouse
from tests.support.paimon_tables import NAME, append, create, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 4_000
TODAY = {"id": "bigint", "a": "bigint", "words": "string", "share": "double", "n": "int"}
FIRST = {"id": "bigint", "a": "int", "text": "string", "old": "double"}
ALTERS = (
    SchemaChange.rename_column("text", "words"),
    SchemaChange.update_column_type("a", AtomicType("BIGINT")),
    SchemaChange.rename_column("old", "share"),
    SchemaChange.add_column("n", AtomicType("INT")),
)
CASES = [
    MergeCase("matched", UpdateAction((Assignment("a", "s.a"), Assignment("words", "s.words")))),
    MergeCase("not_matched", InsertAllAction()),
]


def rows_of(number: int, columns: list[str]) -> list[dict[str, Any]]:
    rows = []
    for i in range(number * ROWS, (number + 1) * ROWS):
        word = f"word {i % 97}"
        row = {"id": i, "a": i % 1000, "text": word, "words": word, "old": i / 7, "share": i / 7}
        rows.append({name: row.get(name) for name in columns})
    return rows


def fill(warehouse: Path, columns: dict[str, str], options: dict[str, str]) -> Warehouse:
    """Five files, before each of them but the first an ALTER if the table needs them."""
    warehouse.mkdir()
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    table = create(connector, columns, options=options)
    catalog = table.native.table.catalog_environment.catalog_loader.load()
    for number in range(len(ALTERS) + 1):
        if number and columns is FIRST:
            catalog.alter_table(str(NAME), [ALTERS[number - 1]])
        names = [column.name for column in connector.metadata.load_table(NAME).columns]
        append(connector, rows_of(number, names), f"append {number}")
    return Warehouse(warehouse)


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}])
def test_bytes_and_files(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    old = fill(tmp_path / "old", FIRST, options)
    new = fill(tmp_path / "new", TODAY, options)
    values = {"id": [5, ROWS + 5, 3 * ROWS + 5, 9 * ROWS], "a": [1, 2, 3, 4], "words": ["w"] * 4}
    nulls = {"share": pa.nulls(4, pa.float64()), "n": pa.nulls(4, pa.int32())}
    source = pa.table(values | nulls)

    results = [merge(spark, each, source, CASES, table=str(NAME)) for each in (old, new)]

    assert [each.error for each in results] == [None, None]
    was, now = (each.metrics for each in results)
    assert (was.updated, was.inserted) == (now.updated, now.inserted) == (3, 1)
    assert was.files_scanned == now.files_scanned == 3, "files without these keys are dropped"
    assert was.files_rewritten == now.files_rewritten
    assert was.bytes_added == pytest.approx(now.bytes_added, rel=0.05)
    connectors = [open_connector(CatalogSpec("paimon", str(each.path)), {}) for each in (old, new)]
    assert read(connectors[0]) == read(connectors[1])
