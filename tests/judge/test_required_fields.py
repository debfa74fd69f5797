"""Structs that are NULL although their fields are NOT NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.contract.statements import InsertAllAction, MergeCase, UpdateAllAction
from tests.judge.merging import merge_query
from tests.judge.tables import Warehouse
from tests.judge.writer import JavaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POINT = {
    "type": "ROW",
    "fields": [
        {"id": 0, "name": "x", "type": "INT NOT NULL"},
        {"id": 1, "name": "l", "type": {"type": "ARRAY NOT NULL", "element": "STRING NOT NULL"}},
    ],
}


def test_a_struct_of_required_fields_can_be_null(spark: SparkSession, warehouse: Warehouse) -> None:
    kinds = {"id": "BIGINT", "r": POINT, "a": {"type": "ARRAY", "element": POINT}}
    table = JavaTable.of_types(warehouse.path, "d.t", kinds)
    point = {"x": 1, "l": ["a"]}
    table.append_rows([{"id": 1, "r": point, "a": [None, point]}, {"id": 2, "r": None, "a": None}])
    value = "named_struct('x', 7, 'l', array('b', 'c'))"
    query = f"""
        SELECT 1L AS id, NULL AS r, NULL AS a
        UNION ALL SELECT 2L, {value}, array(NULL, {value}) UNION ALL SELECT 3L, NULL, array({value})
        UNION ALL SELECT 4L, {value}, array()
    """
    cases = [MergeCase("matched", UpdateAllAction()), MergeCase("not_matched", InsertAllAction())]

    result = merge_query(spark, warehouse, query, cases)

    assert result.error is None, result.error
    new = {"x": 7, "l": ["b", "c"]}
    rows = sorted(warehouse.both_readers("d.t"), key=lambda row: row["id"])
    assert rows == [
        {"id": 1, "r": None, "a": None},
        {"id": 2, "r": new, "a": [None, new]},
        {"id": 3, "r": None, "a": [new]},
        {"id": 4, "r": new, "a": []},
    ]
