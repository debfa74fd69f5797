"""Runs a few statements on a table of its own, so that Java loads the classes they need.

``spark-submit … training.py FOLDER``: the driver whose classes become a class archive (the
provider's ``class-archive`` command). The folder is the warehouse; it may be removed afterwards.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec
from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobRequest,
    Source,
    SqlSource,
    TableName,
)
from spark_jobs.contract.statements import (
    Assignment,
    ColumnSpec,
    CreateTableSpec,
    DeleteAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    Statement,
    UpdateAction,
)
from spark_jobs.run import run

_TARGET = TableName("training", "orders")
_COLUMNS = {
    "id": "BIGINT",
    "amount": "DECIMAL(10,2)",
    "note": "STRING",
    "at": "TIMESTAMP",
    "day": "STRING",
}
_SCHEMA = ", ".join(f"{name} {type_}" for name, type_ in _COLUMNS.items())
_ROWS = """
SELECT id, CAST(id AS DECIMAL(10,2)) AS amount, concat('note ', id) AS note,
       timestamp_millis(id) AS at, concat('2024-01-0', 1 + id % 3) AS day
FROM range(1000)
"""


def statements(csv: Path) -> list[tuple[Statement, tuple[Source, ...]]]:
    """The statements with their sources, in order; ``csv`` is written for one of them."""
    lines = [f"{number},{number}.50,changed,2024-01-02 03:04:05,2024-01-02" for number in range(99)]
    csv.write_text("\n".join(["id,amount,note,at,day", *lines, ""]), encoding="utf-8")
    columns = tuple(ColumnSpec(name, type_) for name, type_ in _COLUMNS.items())
    cases = (
        MergeCase("matched", DeleteAction(), "s.id % 7 = 0"),
        MergeCase("matched", UpdateAction((Assignment("note", "s.note"),))),
        MergeCase("not_matched", InsertAllAction()),
    )
    rows = SqlSource("s", _ROWS)
    landed = FileSource("s", str(csv), "csv", {"header": "true"}, _SCHEMA)
    return [
        (CreateTableSpec(columns, ("day",)), ()),
        (InsertIntoSpec("s"), (rows,)),
        (MergeSpec("s", "t.id = s.id AND t.day = s.day", cases, "t", "s"), (landed,)),
        (InsertOverwriteSpec("s", mode="dynamic"), (rows,)),
    ]


def main(folder: Path) -> int:
    """Run all statements on one session; 0 if all succeed, 1 after the first failure."""
    folder.mkdir()
    spark = SparkSession.builder.getOrCreate()
    catalog = CatalogSpec("paimon", str(folder))
    try:
        for number, (statement, sources) in enumerate(statements(folder / "orders.csv")):
            result = run(
                JobRequest(f"training-{number}", _TARGET, catalog, statement, sources), spark
            )
            if result.error is not None:
                sys.stderr.write(f"{result.error.code}: {result.error.message}\n")
                return 1
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
