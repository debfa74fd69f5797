"""Files' bounds of floating-point columns in manifests include all that those of Paimon's Java do.

Java has NaN as a bound, which only Java orders; here, a column with a NaN has no bounds. Java tells
the zeros apart, and a file of one of them is skipped if the other is looked for; here it is not.
"""

from __future__ import annotations

import math

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName
from tests.judge.judge import facts_from_java, read_with_java
from tests.judge.writer import JavaTable
from tests.support.paimon_tables import append

NAN = math.nan
KINDS = {"id": "INT", "f": "DOUBLE", "g": "FLOAT"}
VALUES = [
    *([1.5, NAN], [NAN, NAN, None], [None], [0.0, 0.0], [-0.0, -0.0], [0.0, -0.0]),
    *([-1.5, -0.0], [0.0, 1.5], [math.inf, -math.inf, None]),
]


@pytest.mark.parametrize("values", VALUES, ids=str)
def test_bounds_beside_those_of_java(warehouse, values):
    rows = [{"id": n, "f": value, "g": value} for n, value in enumerate(values)]
    java = JavaTable.of_types(warehouse.path, "d.java", KINDS)
    java.append_rows(rows)
    JavaTable.of_types(warehouse.path, "d.own", KINDS)
    connector = open_connector(CatalogSpec("paimon", str(warehouse.path)), {})
    append(connector, rows, name=TableName("d", "own"))

    (of_java,) = facts_from_java(warehouse.path, "d.java").files
    (own,) = facts_from_java(warehouse.path, "d.own").files

    for column in ("f", "g"):
        theirs, ours = of_java.statistics[column], own.statistics[column]
        assert ours.null_count == theirs.null_count
        if theirs.maximum is None or math.isnan(theirs.maximum):
            assert (ours.minimum, ours.maximum) == (None, None)
        else:
            assert repr(ours.minimum) == repr(theirs.minimum or -0.0)
            assert repr(ours.maximum) == repr(theirs.maximum or 0.0)
    warehouse.checked_files("d.own")
    for value in filter(math.isfinite, {*values} - {None}):
        found = {row["id"] for row in read_with_java(warehouse.path, "d.own", where=("f", value))}
        assert found >= {n for n, each in enumerate(values) if each == value}
