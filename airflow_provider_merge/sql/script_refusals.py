"""What a text of several statements may have for spark-sql, and what to do here instead."""

from __future__ import annotations

from typing import Final

from airflow_provider_merge.sql.cursor import Cursor
from airflow_provider_merge.sql.text import SqlText
from spark_jobs.errors import NotSupportedError

_QUERY: Final = "Run it with QueryOperator, or leave it out."
_SHOWS: Final = "Leave it out: it only shows something."
_LATEST: Final = "Leave it out: each statement reads tables at their latest snapshots."
_CACHE: Final = "Leave it out, or make a temporary view of the query."
_SCRIPT: Final = "Write the statements one after the other, or the logic in the DAG."
_VIEW: Final = "Write CREATE TEMPORARY VIEW, for the statements behind it."
_FILES: Final = "Leave it out: a task takes a list of files."

_INSTEAD: Final[dict[tuple[str, ...], str]] = {
    **dict.fromkeys((("SELECT",), ("VALUES",), ("TABLE",)), _QUERY),
    ("FROM",): "Begin with INSERT or SELECT; write each INSERT of FROM ... INSERT by itself.",
    **dict.fromkeys((("SHOW",), ("DESCRIBE",), ("DESC",), ("EXPLAIN",)), _SHOWS),
    **dict.fromkeys((("REFRESH",), ("MSCK",), ("REPAIR",)), _LATEST),
    **dict.fromkeys((("CACHE",), ("UNCACHE",), ("CLEAR",)), _CACHE),
    ("ANALYZE",): "Leave it out: files have their statistics from who writes them.",
    **dict.fromkeys((("BEGIN",), ("DECLARE",), ("EXECUTE",), ("IF",), ("WHILE",)), _SCRIPT),
    ("RESET",): "Write SET key = value, with the value that the statements behind it need.",
    **dict.fromkeys((("SOURCE",), ("QUIT",), ("EXIT",)), _FILES),
    ("ADD",): "Leave it out: functions of others do not run in statements.",
    ("LOAD",): "Insert the rows of files: sources={'name': file_source(...)}.",
    **dict.fromkeys((("GRANT",), ("REVOKE",)), "Leave it out: the catalog has the rights."),
    ("OPTIMIZE",): "Use CompactOperator.",
    ("VACUUM",): "Use ExpireSnapshotsOperator and RemoveOrphanFilesOperator.",
    ("CREATE", "OR", "REPLACE", "VIEW"): _VIEW,
    ("CREATE", "VIEW"): _VIEW,
    ("CREATE", "GLOBAL"): _VIEW,
    ("CREATE", "OR", "REPLACE", "GLOBAL"): _VIEW,
    ("ALTER", "VIEW"): "Write CREATE OR REPLACE TEMPORARY VIEW.",
    ("REPLACE", "TABLE"): "Write CREATE OR REPLACE TABLE ... AS.",
    ("CREATE", "OR", "REPLACE", "TABLE"): "Give it a query: CREATE OR REPLACE TABLE ... AS SELECT.",
    ("CREATE", "EXTERNAL"): "Write CREATE TABLE: the catalog says where its tables lie.",
    **dict.fromkeys(
        (("CREATE", "DATABASE"), ("CREATE", "SCHEMA"), ("CREATE", "NAMESPACE")),
        "Leave it out: CREATE TABLE creates the table's database.",
    ),
    ("CREATE", "FUNCTION"): "Leave it out: statements call functions of Spark only.",
    ("DROP",): "Only tables and temporary views are dropped: DROP TABLE, DROP VIEW.",
}


def refused(sql: SqlText) -> NotSupportedError:
    """The refusal of a statement that nothing here runs."""
    cursor = Cursor(sql)
    start = cursor.token.start
    words = max((each for each in _INSTEAD if cursor.at(*each)), key=len, default=())
    if words:
        return sql.unsupported(start, f"{' '.join(words)} is not supported", _INSTEAD[words])
    count = 2 if sql.tokens[1].kind == "word" else 1
    text = " ".join(each.text.upper() for each in sql.tokens[:count])
    remedy = "Leave it out, or run it with the engine that it is for."
    return sql.unsupported(start, f"{text} is not supported", remedy)
