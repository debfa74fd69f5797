"""Java finds each row of a partition once, after its files or rows were removed here."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from pypaimon.schema.data_types import PyarrowFieldParser

from tests.judge.judge import read_with_java
from tests.judge.merging import delete, update
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences
from tests.support.paimon_appends import appends_to_null_partitions

VALUES = {
    "NULL in DECIMAL(19, 0)": ("DECIMAL(19, 0)", None),
    "NULL in TIMESTAMP(6)": ("TIMESTAMP(6)", None),
    "-128 in DECIMAL(19, 0)": ("DECIMAL(19, 0)", Decimal(-128)),
}


# The matrix of types has these partitions without deletion vectors.
WITHOUT_VECTORS = pytest.param("false", marks=pytest.mark.extended)


@pytest.mark.parametrize("vectors", [WITHOUT_VECTORS, "true"])
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("writer", ["Java", "pypaimon"])
def test_changed_rows(spark, warehouse, name, vectors, writer):
    kind, value = VALUES[name]
    kinds = {"id": "BIGINT", "p": kind}
    options = {"deletion-vectors.enabled": vectors, "manifest.merge-min-count": "2"}
    table = JavaTable.of_types(warehouse.path, "d.t", kinds, ["p"], options)
    rows = [{"id": i, "p": value} for i in range(6)]
    if writer == "Java":
        table.append_rows(rows)
    else:
        schema = PyarrowFieldParser.from_paimon_schema(warehouse.table("d.t").fields)
        with appends_to_null_partitions():
            warehouse.append("d.t", pa.Table.from_pylist(rows, schema=schema))

    assert update(spark, warehouse, {"id": "id + 10"}, "id = 1").error is None
    assert delete(spark, warehouse, "id = 2").error is None

    table.append_rows([{"id": 20, "p": value}])
    expected = [{"id": i, "p": value} for i in (0, 11, 3, 4, 5, 20)]
    assert not differences(warehouse.both_readers("d.t"), expected)
    table.expire()
    assert not differences(read_with_java(warehouse.path, "d.t"), expected)
