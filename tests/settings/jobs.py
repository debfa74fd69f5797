"""Whole statements on a table, as jobs run them: what the table holds and a query returns."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobRequest,
    Source,
    SqlSource,
    TableSource,
)
from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    DeleteSpec,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    Statement,
    UpdateAction,
    UpdateSpec,
)
from spark_jobs.run import run
from tests.settings.outcomes import Outcomes
from tests.support.paimon_tables import NAME, create, read

_INSERTED: Final = "SELECT CAST(id AS INT) AS id, id / 3 AS d, 'v' || id AS v FROM range(40)"
_MERGED: Final = "SELECT CAST(id AS INT) AS id, d, v FROM landed"


def job_outcomes(spark: SparkSession) -> Outcomes:
    """What is in a new table after each of some statements, and the rows of a query."""
    with tempfile.TemporaryDirectory(prefix="settings-") as folder:
        return _outcomes(spark, Path(folder))


def _outcomes(spark: SparkSession, folder: Path) -> Outcomes:
    connector = open_connector(CatalogSpec("paimon", str(folder)), {})
    create(connector, {"id": "int", "d": "decimal(10, 4)", "v": "string"})
    rows = {"id": list(range(30, 50)), "d": [0.5] * 20, "v": [f"w{i}" for i in range(20)]}
    (folder / "landing").mkdir()
    pq.write_table(pa.table(rows), folder / "landing" / "rows.parquet")
    landed = FileSource("landed", str(folder / "landing"), "parquet")
    cases = (
        MergeCase("matched", DeleteAction(), "s.v RLIKE '5$'"),
        MergeCase("matched", UpdateAction((Assignment("v", "concat(t.v, '-', s.v)"),))),
        MergeCase("not_matched", InsertAllAction()),
    )
    statements: dict[str, tuple[Statement, tuple[Source, ...]]] = {
        "insert": (InsertIntoSpec("q"), (SqlSource("q", _INSERTED),)),
        "merge": (
            MergeSpec("s", "t.id = s.id", cases, "t", "s"),
            (landed, SqlSource("s", _MERGED)),
        ),
        "update": (UpdateSpec("t", (Assignment("d", "d * 2 + id / 7"),), "id % 3 = 0"), ()),
        "delete": (DeleteSpec("t", "id IN (SELECT id FROM landed WHERE id > 45)"), (landed,)),
    }
    found: dict[str, str] = {}
    for name, (statement, sources) in statements.items():
        request = JobRequest(name, NAME, CatalogSpec("paimon", str(folder)), statement, sources)
        result = run(request, spark)
        found[name] = str(result.error or read(connector))
    asked = SqlSource("query", "SELECT id % 4 AS k, sum(d) AS d FROM t GROUP BY 1 ORDER BY 1")
    query = JobRequest(
        "query",
        None,
        CatalogSpec("paimon", str(folder)),
        QuerySpec("query"),
        (TableSource("t", NAME), asked),
    )
    result = run(query, spark)
    found["query"] = str(result.error or (result.query and result.query.rows))
    return found
