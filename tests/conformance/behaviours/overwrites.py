"""INSERT, INSERT OVERWRITE, TRUNCATE and DROP PARTITION: what is replaced, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    OverwriteMode,
    PartitionStatement,
    TruncateTableSpec,
)
from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import Behaviour, fails
from tests.conformance.tables import EMPTY, NESTED, ORDERS, Row, SeedTable, nested

_ALL = "s(id, k, v, n, req, p)"
_TWO = f"VALUES (1, 11, 'x', 3, 'r', 'a'), (2, 12, NULL, 4, 'r', 'z') AS {_ALL}"
_NONE = f"(SELECT * FROM VALUES (1, 11, 'x', 3, 'r', 'a') AS {_ALL} WHERE id > 1) AS s"


def new(id_: int, k: int, v: str | None, n: int | None, p: str | None) -> Row:
    """A row that a source above has."""
    return {"id": id_, "k": k, "v": v, "n": n, "req": "r", "p": p}


_TWO_ROWS = (new(1, 11, "x", 3, "a"), new(2, 12, None, 4, "z"))


def of(*partitions: str | None, table: SeedTable = ORDERS) -> frozenset[int]:
    """Ids of the rows of these partitions."""
    return frozenset(row["id"] for row in table.rows if row["p"] in partitions)


def does(name: str, statement: PartitionStatement, source: str = _TWO, **outcome: Any) -> Behaviour:
    """A behaviour of a statement that needs partitions, unless ``outcome`` says otherwise."""
    outcome = {"needs_partitions": True, "matched": 0, **outcome}
    return Behaviour(name, source, (), statement=statement, **outcome)


def overwrite(
    mode: OverwriteMode, partition: Mapping[str, str] | None = None, **more: Any
) -> InsertOverwriteSpec:
    """``INSERT OVERWRITE`` from ``s``."""
    return InsertOverwriteSpec("s", mode, partition or {}, **more)


_REPLACING = [
    does(
        "overwrite: dynamic replaces the partitions of the new rows",
        overwrite("dynamic"),
        deleted=of("a"),
        inserted=_TWO_ROWS,
        source_rows=2,
        smoke=True,
    ),
    does(
        "overwrite: dynamic, the partition of NULL",
        overwrite("dynamic"),
        "VALUES (1, 11, 'x', 3, 'r', CAST(NULL AS STRING)) AS s(id, k, v, n, req, p)",
        deleted=of(None),
        inserted=(new(1, 11, "x", 3, None),),
    ),
    does("overwrite: dynamic without rows", overwrite("dynamic"), _NONE, source_rows=0),
    does(
        "overwrite: dynamic with a full spec is static",
        overwrite("dynamic", {"p": "'b'"}),
        _NONE,
        deleted=of("b"),
    ),
    does(
        "overwrite: static fills the spec's columns in",
        overwrite("static", {"P": "concat('', 'c')"}),
        "VALUES (1, 11, 'x', 3, 'r') AS s(a, b, c, d, e)",
        deleted=of("c"),
        inserted=(new(1, 11, "x", 3, "c"),),
    ),
    does(
        "overwrite: static, rows that say their partition",
        overwrite("static", {"`p`": "'a'"}, by_name=True),
        "VALUES ('a', 'r', 1, 11) AS s(p, REQ, id, k)",
        deleted=of("a"),
        inserted=(new(1, 11, None, None, "a"),),
    ),
    does(
        "overwrite: static, the partition of NULL",
        overwrite("static", {"p": "NULL"}),
        "VALUES (1, 11, 'x', 3, 'r') AS s(a, b, c, d, e)",
        deleted=of(None),
        inserted=(new(1, 11, "x", 3, None),),
    ),
    does(
        "overwrite: static without rows clears the partition",
        overwrite("static", {"p": "'a'"}),
        _NONE,
        deleted=of("a"),
        source_rows=0,
    ),
    does(
        "overwrite: static without rows, of a partition that is not there",
        overwrite("static", {"p": "'y'"}),
        _NONE,
    ),
    does(
        "overwrite: table replaces everything",
        overwrite("table"),
        deleted=of("a", "b", "c", None),
        inserted=_TWO_ROWS,
        needs_partitions=False,
        smoke=True,
    ),
    does(
        "overwrite: table without rows, where that is allowed",
        overwrite("table", allow_empty=True),
        _NONE,
        deleted=of("a", "b", "c", None),
    ),
    does(
        "overwrite: columns are named, the others take NULL",
        overwrite("dynamic", columns=("p", "ID", "`req`")),
        "VALUES ('a', 1, 'r') AS s(id, p, k)",
        deleted=of("a"),
        inserted=({"id": 1, "k": None, "v": None, "n": None, "req": "r", "p": "a"},),
    ),
    does(
        "overwrite: the table itself is the source",
        InsertOverwriteSpec("target", "static", {"p": "'z'"}, columns=("id", "k", "v", "n", "req")),
        fails=fails(ErrorCode.EXPRESSION_INVALID, "6 columns for 5"),
    ),
    does(
        "overwrite: a partition from rows of the table itself",
        overwrite("dynamic"),
        "(SELECT id + 1000, k, v, n, req, 'b' FROM target WHERE id IN (101, 102)) AS s",
        deleted=of("b"),
        inserted=(new(1101, 101, "v101", 1, "b"), new(1102, 102, "v102", 2, "b")),
    ),
    does(
        "overwrite: values are stored by ANSI cast",
        overwrite("dynamic"),
        "VALUES (1Y, '11', 5, 3.7D, 'r', 'a') AS s(id, k, v, n, req, p)",
        deleted=of("a"),
        inserted=(new(1, 11, "5", 3, "a"),),
    ),
    does(
        "overwrite: expected partitions",
        overwrite("dynamic", expected_partitions=({"p": "'a'"}, {"p": "'z'"}, {"p": "'y'"})),
        deleted=of("a"),
        inserted=_TWO_ROWS,
    ),
    does(
        "overwrite: nested values",
        overwrite("dynamic", by_name=True),
        "(SELECT id + 1000 AS id, info, tags, attrs, deep, p FROM target WHERE id = 12) AS s",
        table=NESTED,
        deleted=of("x", table=NESTED),
        inserted=({**nested(12, "x"), "id": 1012},),
    ),
    does(
        "overwrite: a table without rows",
        overwrite("dynamic"),
        table=EMPTY,
        inserted=_TWO_ROWS,
    ),
    does(
        "insert into: nothing is replaced",
        InsertIntoSpec("s"),
        inserted=_TWO_ROWS,
        needs_partitions=False,
        smoke=True,
    ),
    does("insert into: no rows", InsertIntoSpec("s"), _NONE, needs_partitions=False),
    does(
        "insert into: a partition is named",
        InsertIntoSpec("s", {"p": "'b'"}, by_name=True),
        "VALUES ('r', 1, 11) AS s(req, id, k)",
        inserted=(new(1, 11, None, None, "b"),),
    ),
    does(
        "truncate: every row",
        TruncateTableSpec(),
        deleted=of("a", "b", "c", None),
        needs_partitions=False,
        smoke=True,
    ),
    does("truncate: a partition", TruncateTableSpec({"p": "'b'"}), deleted=of("b")),
    does("truncate: a partition that is not there", TruncateTableSpec({"p": "'y'"})),
    does("truncate: a table without rows", TruncateTableSpec(), table=EMPTY),
    does(
        "drop partitions: several",
        DropPartitionsSpec(({"p": "'b'"}, {"p": "NULL"})),
        deleted=of("b", None),
    ),
    does(
        "drop partitions: one that is not there, IF EXISTS",
        DropPartitionsSpec(({"p": "'b'"}, {"p": "'y'"}), if_exists=True),
        deleted=of("b"),
    ),
]


def refused(
    name: str, statement: PartitionStatement, code: ErrorCode, *says: str, source: str = _TWO
) -> Behaviour:
    """A behaviour of a statement that fails."""
    return does(f"{name} is refused", statement, source, fails=fails(code, *says))


REFUSED = [
    refused(
        "overwrite: rows outside of the spec",
        overwrite("static", {"p": "'a'"}),
        ErrorCode.ROW_OUTSIDE_PARTITION,
        "p = 'z'",
        "p = 'a'",
    ),
    refused(
        "overwrite: rows outside of a full spec in mode dynamic",
        overwrite("dynamic", {"p": "'a'"}),
        ErrorCode.ROW_OUTSIDE_PARTITION,
        "p = 'z'",
    ),
    refused(
        "overwrite: an unknown column in the spec",
        overwrite("static", {"q": "1"}),
        ErrorCode.COLUMN_NOT_FOUND,
        "q is not a column",
    ),
    refused(
        "overwrite: a column in the spec that is no partition column",
        overwrite("static", {"id": "1"}),
        ErrorCode.COLUMN_NOT_FOUND,
        "id is not a partition column",
    ),
    refused(
        "overwrite: a spec of a type that cannot be stored",
        overwrite("static", {"p": "array(1)"}),
        ErrorCode.TYPE_MISMATCH,
        "PARTITION",
        "p",
    ),
    refused(
        "overwrite: a spec that is not constant",
        overwrite("static", {"p": "v"}),
        ErrorCode.EXPRESSION_NOT_ALLOWED,
        "p",
    ),
    refused(
        "overwrite: a spec that is random",
        overwrite("static", {"p": "CAST(rand() AS STRING)"}),
        ErrorCode.EXPRESSION_NOT_ALLOWED,
        "p",
    ),
    refused(
        "overwrite: a spec with a syntax error",
        overwrite("static", {"p": "1 +"}),
        ErrorCode.SYNTAX_ERROR,
        "p",
    ),
    refused(
        "overwrite: an empty source in mode table",
        overwrite("table"),
        ErrorCode.SOURCE_EMPTY,
        "db.target",
        source=_NONE,
    ),
    refused(
        "overwrite: a partition that is not expected",
        overwrite("dynamic", expected_partitions=({"p": "'a'"},)),
        ErrorCode.PARTITION_NOT_EXPECTED,
        "p = 'z'",
    ),
    refused(
        "overwrite: clearing a partition that is not expected",
        overwrite("table", expected_partitions=({"p": "'a'"}, {"p": "'z'"}, {"p": "NULL"})),
        ErrorCode.PARTITION_NOT_EXPECTED,
        "p = 'b'",
    ),
    refused(
        "overwrite: expected partitions of an unknown column",
        overwrite("dynamic", expected_partitions=({"p": "'a'"}, {"q": "1"})),
        ErrorCode.COLUMN_NOT_FOUND,
        "expected_partitions[1]",
        "q",
    ),
    refused(
        "overwrite: a partition column without a value",
        overwrite("dynamic", by_name=True),
        ErrorCode.COLUMN_NOT_FOUND,
        "partition column p",
        source="VALUES (1, 'r') AS s(id, req)",
    ),
    refused(
        "overwrite: too few columns",
        overwrite("dynamic"),
        ErrorCode.EXPRESSION_INVALID,
        "2 columns for 6",
        source="VALUES (1, 'r') AS s(id, req)",
    ),
    refused(
        "overwrite: by name, a column that the table lacks",
        overwrite("dynamic", by_name=True),
        ErrorCode.COLUMN_NOT_FOUND,
        "extra",
        source="VALUES (1, 'r', 'a', 1) AS s(id, req, p, extra)",
    ),
    refused(
        "overwrite: by name, a column twice",
        overwrite("dynamic", by_name=True),
        ErrorCode.AMBIGUOUS_REFERENCE,
        "id",
        source="VALUES (1, 'r', 'a', 1) AS s(id, req, p, ID)",
    ),
    refused(
        "overwrite: a column list with an unknown column",
        overwrite("dynamic", columns=("id", "req", "p", "nope")),
        ErrorCode.COLUMN_NOT_FOUND,
        "nope",
        source="VALUES (1, 'r', 'a', 1) AS s(id, req, p, x)",
    ),
    refused(
        "overwrite: a column list with a column twice",
        overwrite("dynamic", columns=("id", "p", "ID")),
        ErrorCode.DUPLICATE_ASSIGNMENT,
        "id",
        source="VALUES (1, 'a', 2) AS s(id, p, x)",
    ),
    refused(
        "overwrite: a column list with a column twice, spelled alike",
        overwrite("dynamic", columns=("id", "p", "id")),
        ErrorCode.DUPLICATE_ASSIGNMENT,
        "id",
        source="VALUES (1, 'a', 2) AS s(id, p, x)",
    ),
    refused(
        "overwrite: a value of a type that cannot be stored",
        overwrite("dynamic", by_name=True),
        ErrorCode.TYPE_MISMATCH,
        "n",
        source="VALUES (1, 'r', 'a', DATE '2026-01-01') AS s(id, req, p, n)",
    ),
    refused(
        "overwrite: a value that cannot be stored",
        overwrite("dynamic", by_name=True),
        ErrorCode.VALUE_NOT_STORABLE,
        "n",
        "many",
        source="VALUES (1, 'r', 'a', 'many') AS s(id, req, p, n)",
    ),
    refused(
        "overwrite: NULL for NOT NULL",
        overwrite("dynamic", by_name=True),
        ErrorCode.NOT_NULL_VIOLATION,
        "req",
        source="VALUES (1, 'r', 'a'), (2, NULL, 'z') AS s(id, req, p)",
    ),
    refused(
        "overwrite: NOT NULL left out",
        overwrite("dynamic", by_name=True),
        ErrorCode.COLUMN_NOT_FOUND,
        "req",
        source="VALUES (1, 'a') AS s(id, p)",
    ),
    refused(
        "overwrite: ordered by an unknown column",
        overwrite("dynamic", order_by=("nope DESC",)),
        ErrorCode.COLUMN_NOT_FOUND,
        "order_by",
        "nope",
    ),
    refused(
        "drop partitions: one that is not there",
        DropPartitionsSpec(({"p": "'b'"}, {"p": "'y'"})),
        ErrorCode.PARTITION_NOT_FOUND,
        "p = 'y'",
    ),
    refused(
        "truncate: an unknown column",
        TruncateTableSpec({"q": "1"}),
        ErrorCode.COLUMN_NOT_FOUND,
        "q",
    ),
]

BEHAVIOURS = [*_REPLACING, *REFUSED]
