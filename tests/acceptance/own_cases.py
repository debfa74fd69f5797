"""Cases written for the runner's own tests, in the format of the acceptance cases."""

from __future__ import annotations

import copy
from typing import Any

Document = dict[str, Any]

TARGET: Document = {
    "table": "target",
    "columns": [["id", "INT"], ["v", "STRING"]],
    "partitioned_by": [],
    "primary_key": ["id"],
    "props": {"bucket": "1", "merge-engine": "deduplicate"},
    "rows": [[1, "a"], [2, "b"], [3, None]],
}
CHANGES: Document = {
    "table": "changes",
    "columns": [["id", "INT"], ["v", "STRING"]],
    "partitioned_by": [],
    "primary_key": [],
    "kind": "view",
    "rows": [[2, "B"], [4, "d"]],
}
UPSERT = (
    "MERGE INTO target t USING changes s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
UPSERTED = [[1, "a"], [2, "B"], [3, None], [4, "d"]]


def case(id_: str, statement: str, expected: Document, **more: Any) -> Document:
    """A case on TARGET and CHANGES."""
    return {
        "id": id_,
        "create": [TARGET, CHANGES],
        "statement": statement,
        "expected": expected,
        "portability": "portable",
        "tags": [],
        **more,
    }


def with_tables(document: Document, *tables: Document) -> Document:
    """The case on other tables."""
    return document | {"create": list(tables)}


def changed(table: Document, **more: Any) -> Document:
    """A table that differs in some fields."""
    return copy.deepcopy(table) | more


_TYPED = changed(
    TARGET,
    columns=[
        ["id", "INT"],
        ["day", "DATE"],
        ["price", "DECIMAL(5,2)"],
        ["at", "TIMESTAMP"],
        ["info", "STRUCT<a: INT, b: STRUCT<c: STRING>>"],
        ["names", "MAP<STRING, INT>"],
        ["list", "ARRAY<STRUCT<x: INT>>"],
        ["code", "VARCHAR(5)"],
        ["rate", "DOUBLE"],
    ],
    rows=[
        [
            1,
            "2024-02-29",
            "1.50",
            "2024-02-29 10:00:00",
            {"a": 1, "b": {"c": "x"}},
            {"__map__": [["k", 1], ["l", None]]},
            [{"x": 1}, {"x": None}],
            "abc",
            0.5,
        ],
        [2, None, None, None, None, None, None, None, None],
    ],
)
_TYPED_AFTER = [
    [
        1,
        "2024-03-01",
        "2.50",
        "2024-02-29 10:00:00",
        {"a": 1, "b": {"c": "y"}},
        {"__map__": [["l", None], ["k", 1]]},
        [{"x": 1}, {"x": None}],
        "abc",
        1.0,
    ],
    [2, None, None, None, None, None, None, None, None],
]
_DUPLICATES = changed(CHANGES, rows=[[1, "x"], [1, "y"], [5, "e"]])
_RULE = {"trino": True, "spark_v2": True, "delta": True, "paimon_v1": True, "ansi_effective": True}
_SOURCE_TABLE = changed(CHANGES, kind="table")
_DEFAULTS = changed(
    TARGET,
    columns=[["id", "INT"], ["v", "STRING"], ["n", "INT"], ["day", "DATE"], ["gone", "STRING"]],
    rows=[[1, "a", 1, "2024-01-01", "g"]],
    defaults={"v": "'it''s'", "n": "-7", "day": "DATE '2024-02-29'", "gone": "NULL"},
)
_DEFAULT_ROW = ["it's", -7, "2024-02-29", None]


def _stored(id_: str, value: str, policy: str, expected: Document) -> Document:
    """A value that is stored as INT under a policy."""
    return with_tables(
        case(
            id_,
            f"UPDATE target SET n = {value} WHERE id = 1",
            expected,
            settings={"storeAssignmentPolicy": policy},
        ),
        changed(TARGET, columns=[["id", "INT"], ["n", "INT"]], rows=[[1, 1]]),
    )


_EVOLVING = {"settings": {"schema_evolution": True}}
_STRUCT = changed(TARGET, columns=[["id", "INT"], ["s", "STRUCT<a: INT, b: INT>"]])
_PART = changed(CHANGES, columns=[["id", "INT"], ["s", "STRUCT<a: INT>"]], rows=[[1, {"a": 9}]])

# Those that hold, by what they show.
GOOD = [
    case("upsert", UPSERT, {"rows": UPSERTED, "order_by": "id"}, update_count=2),
    with_tables(case("from a table", UPSERT, {"rows": UPSERTED}), TARGET, _SOURCE_TABLE),
    with_tables(
        case("from a query", UPSERT, {"rows": UPSERTED}),
        TARGET,
        changed(CHANGES, query="SELECT 2 AS id, 'B' AS v UNION ALL SELECT 4, 'd'"),
    ),
    with_tables(
        case("from nothing but NULL", UPSERT, {"rows": [[1, "a"], [2, None], [3, None]]}),
        TARGET,
        changed(CHANGES, columns=[["id", "INT"], ["v", "VOID"]], rows=[[2, None]]),
    ),
    with_tables(
        case(
            "of many types",
            "UPDATE target SET day = day + INTERVAL 1 DAY, price = price + 1, info.b.c = 'y', "
            "rate = 1 WHERE id = 1",
            {"rows": _TYPED_AFTER},
            update_count=1,
        ),
        _TYPED,
    ),
    case(
        "a delete in partitions",
        "DELETE FROM target WHERE id IN (SELECT id FROM changes) OR v IS NULL",
        {"rows": [[1, "a"]]},
        update_count=2,
    )
    | {"create": [changed(TARGET, partitioned_by=["identity(v)", "bucket(4, id)"]), CHANGES]},
    case(
        "a projection",
        UPSERT,
        {"select": ["id + 1", "upper(v)"], "rows": [[2, "A"], [3, "B"], [4, None], [5, "D"]]},
    ),
    case(
        "an ambiguous name",
        UPSERT.replace("t.id = s.id", "id = s.id"),
        {"category": "ambiguous-column"},
    ),
    case("spelled otherwise", "MERGE !", {"rows": UPSERTED}, statement_spark=UPSERT),
    with_tables(
        case("two matches", UPSERT, {"category": "cardinality"}, cardinality_error_in=_RULE),
        TARGET,
        _DUPLICATES,
    ),
    with_tables(
        case(
            "two matches of a delete",
            "MERGE INTO target t USING changes s ON t.id = s.id WHEN MATCHED THEN DELETE",
            {"rows": [[2, "b"], [3, None]]},
            cardinality_error_in=_RULE | {"spark_v2": False},
        ),
        TARGET,
        _DUPLICATES,
    ),
    with_tables(
        case(
            "defaults of an insert",
            "INSERT INTO target (id, n) VALUES (2, DEFAULT), (3, 3)",
            {
                "rows": [
                    [1, "a", 1, "2024-01-01", "g"],
                    [2, *_DEFAULT_ROW],
                    [3, "it's", 3, "2024-02-29", None],
                ]
            },
        ),
        _DEFAULTS,
    ),
    with_tables(
        case(
            "defaults of a merge",
            "MERGE INTO target t USING changes s ON t.id = s.id - 1 WHEN MATCHED THEN UPDATE SET "
            "v = DEFAULT, n = DEFAULT WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, DEFAULT)",
            {"rows": [[1, "it's", -7, "2024-01-01", "g"], [4, *_DEFAULT_ROW]]},
        ),
        _DEFAULTS,
        CHANGES,
    ),
    with_tables(
        case(
            "more columns of wider types",
            UPSERT,
            {
                "rows": [[1, "a", None], [5000000000, "b", 7]],
                "columns": [["id", "BIGINT"], ["v", "STRING"], ["more", "INT"]],
            },
            **_EVOLVING,
        ),
        changed(TARGET, rows=[[1, "a"]]),
        changed(
            CHANGES,
            columns=[["id", "BIGINT"], ["v", "STRING"], ["more", "INT"]],
            rows=[[5000000000, "b", 7]],
        ),
    ),
    _stored("strict that is ANSI", "2", "strict", {"rows": [[1, 2]]}),
    _stored("legacy that is ANSI", "'2'", "legacy", {"rows": [[1, 2]]}),
]

# Those that hold under another store assignment policy than ANSI alone, with their reason.
REFUSED = {
    "strict that differs": (
        _stored("strict that differs", "2.5D", "strict", {"category": "type"}),
        "storeAssignmentPolicy = strict: ANSI casts, which are always used, store the value",
    ),
    "another rule of missing fields": (
        with_tables(
            case(
                "another rule of missing fields",
                UPSERT,
                {"rows": [[1, {"a": 9, "b": None}]]},
                nested_missing_fields="null",
                **_EVOLVING,
            ),
            changed(_STRUCT, rows=[[1, {"a": 1, "b": 2}]]),
            _PART,
        ),
        "nested_missing_fields = null: such a field keeps its value here",
    ),
    "legacy that differs": (
        _stored("legacy that differs", "'x'", "legacy", {"rows": [[1, None]]}),
        "storeAssignmentPolicy = legacy: ANSI casts, which are always used, refuse the value",
    ),
}

# Those that do not, with what their line says.
BAD = {
    "wrong rows": (
        case("wrong rows", UPSERT, {"rows": [[1, "a"], [2, "b"], [3, None], [4, "d"]]}),
        "missing (2, 'b'); unexpected (2, 'B')",
    ),
    "wrong count": (
        case("wrong count", UPSERT, {"rows": UPSERTED}, update_count=3),
        "2 rows reported as changed, not 3",
    ),
    "no error": (
        case("no error", UPSERT, {"category": "ambiguous-column"}),
        "target changed; expected AMBIGUOUS_REFERENCE, got no error",
    ),
    "another error": (
        case("another error", UPSERT.replace("s.id", "s.nothing"), {"category": "cardinality"}),
        "expected MERGE_TARGET_ROW_MULTIPLE_MATCHES, got COLUMN_NOT_FOUND",
    ),
    "an error": (
        case("an error", UPSERT.replace("s.id", "s.nothing"), {"rows": UPSERTED}),
        "COLUMN_NOT_FOUND: ",
    ),
    "not supported": (
        with_tables(
            case("not supported", UPSERT, {"rows": []}, settings={"schema_evolution": True}),
            TARGET,
            changed(CHANGES, columns=[["id", "INT"], ["v", "STRING"], ["_level", "INT"]], rows=[]),
        ),
        "NOT_SUPPORTED: ",
    ),
    "other columns": (
        case("other columns", UPSERT, {"rows": UPSERTED, "columns": [["id", "INT"]]}),
        "columns (('id', 'int'), ('v', 'string')), not (('id', 'int'),)",
    ),
    "strict, other rows": (
        _stored("strict, other rows", "2", "strict", {"rows": [[1, 3]]}),
        "missing (1, 3); unexpected (1, 2)",
    ),
    "strict with an error of another kind": (
        _stored("strict with an error of another kind", "2", "strict", {"category": "cardinality"}),
        "target changed; expected MERGE_TARGET_ROW_MULTIPLE_MATCHES, got no error",
    ),
    "legacy, other rows": (
        _stored("legacy, other rows", "2", "legacy", {"rows": [[1, None]]}),
        "missing (1, NULL); unexpected (1, 2)",
    ),
    "legacy, an unknown column": (
        _stored("legacy, an unknown column", "nothing", "legacy", {"rows": [[1, None]]}),
        "COLUMN_NOT_FOUND: ",
    ),
    "a default that is no literal": (
        with_tables(
            case("a default that is no literal", "DELETE FROM target", {"rows": []}),
            changed(TARGET, defaults={"v": "upper('a')"}),
        ),
        "BadCaseError: default of v: upper('a') is no literal",
    ),
}
