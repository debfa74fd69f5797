"""Checks of rows: what they ask of the job, and wrong ones, found when the DAG is parsed."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import table_source
from airflow_provider_merge.operators.statement_list import delete_from
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.errors import JobError

_TEXT = "MERGE INTO shop.orders t USING feed s ON t.id = s.id WHEN MATCHED THEN DELETE"
WRONG = {
    "text": ("SELECT 1", "checks: expected a list of checks, found str"),
    "number": ([5], r"checks\[0\]: expected SQL or a dict, found int"),
    "empty": ([" "], r"checks\[0\]: is empty"),
    "no name": ([{"sql": "SELECT 1"}], r"checks\[0\].name: expected text"),
    "no sql": ([{"name": "a"}], r"checks\[0\].sql: expected text"),
    "other field": (
        [{"name": "a", "sql": "SELECT 1", "on": "x"}],
        r"checks\[0\].on: unknown field",
    ),
    "same name": ([{"name": "a", "sql": "SELECT 1"}] * 2, "checks: 'a' occurs more than once"),
    "delete": (["DELETE FROM changes"], r"checks\[0\]: line 1, column 1: DELETE"),
    "insert behind": (["WITH a AS (SELECT 1) INSERT INTO t SELECT 1"], r"checks\[0\]: .*INSERT"),
    "two queries": (["SELECT 1; SELECT 2"], r"checks\[0\]: line 1"),
    "unknown": (
        ["SELECT * FROM orders"],
        r"line 1, column 15: a check cannot read orders .*: table_source\('db.orders'\)",
    ),
    "misspelt view": (["SELECT * FROM chnages"], r"cannot read chnages .*Did you mean changes\?"),
    "table": (
        ["SELECT * FROM a.b"],
        r"checks\[0\]: .*a check cannot read a.b .*'b': table_source\('a.b'\)",
    ),
    "chance": (["SELECT rand()"], r"checks\[0\]: .*rand is not deterministic"),
    "id": (["SELECT uuid()"], "uuid is not deterministic"),
    "time": (["SELECT 1 WHERE current_timestamp > x"], "current_timestamp is not deterministic"),
    "today": (["SELECT * FROM new_rows WHERE d < DATE 'today'"], "DATE 'today' is not determ"),
    "now": (["SELECT timestamp_ltz ' NOW UTC', 1 FROM new_rows"], "' NOW UTC' is not determinis"),
    "tomorrow": (['SELECT 1 FROM target WHERE d > date r"tomorrow"'], "is not deterministic"),
    "cast of now": (
        ["SELECT * FROM new_rows WHERE t > CAST('now' AS TIMESTAMP)"],
        "CAST\\('now' is",
    ),
    "date of today": (["SELECT 1 FROM changes WHERE new.d = to_date('today')"], "is not determini"),
    "seconds": (["SELECT * FROM new_rows WHERE s > unix_timestamp( )"], "unix_timestamp is not"),
    "reflection": (["SELECT reflect('java.util.UUID', 'randomUUID')"], "reflect is not determin"),
    "user": (["SELECT * FROM new_rows WHERE u = current_user()"], "current_user is not determin"),
    "yesterday": (
        ["SELECT 1 FROM target WHERE t > TIMESTAMP\n'Yesterday'"],
        "is not deterministic",
    ),
    "count": (
        ["SELECT count(*) FROM changes WHERE operation = 'delete'"],
        r"checks\[0\]: it can never hold: an aggregate .*Remedy: Return the wrong rows.*HAVING",
    ),
    "sum": (["WITH a AS (SELECT 1 x) SELECT 1 + sum(x) FILTER (WHERE x > 1) FROM a"], "never hold"),
    "operation": (
        ["SELECT * FROM changes WHERE operation = 'UPDATE'"],
        r"operation of changes is never 'UPDATE' .*It is one of: insert, update, delete",
    ),
    "operations": (
        ["SELECT * FROM changes c WHERE c.operation IN ('update', 'upsert')"],
        "'upsert'",
    ),
    "operation of a query": (
        ["WITH d AS (SELECT operation, old FROM changes) SELECT 1 FROM d WHERE 'D' <> operation"],
        "operation of changes is never 'D'",
    ),
    "sample": (["SELECT * FROM new_rows TABLESAMPLE (5 ROWS)"], "TABLESAMPLE is not deterministic"),
    "nothing of a column": ([{"column": "a"}], r"checks\[0\]: says nothing of the column"),
    "column no text": ([{"column": 1, "not_null": True}], r"checks\[0\].column: expected"),
    "column no name": ([{"column": "a..b", "unique": True}], r"checks\[0\].column: 'a..b'"),
    "misspelt": ([{"column": "a", "notnull": True}], r"checks\[0\].notnull: unknown field"),
    "not true": ([{"column": "a", "not_null": False}], r"checks\[0\].not_null: expected True"),
    "no list": ([{"column": "a", "accepted_values": "x"}], "accepted_values: expected a list"),
    "no value": (
        [{"column": "a", "accepted_values": [None]}],
        r"accepted_values\[0\]: None is not",
    ),
    "no range": ([{"column": "a", "in_range": [1]}], r"in_range: expected \[low, high\]"),
    "open": ([{"column": "a", "in_range": (None, None)}], "in_range: has no bound"),
    "tolerance": ([{"column": "a", "min": {"tolerance": 1}}], "min.tolerance: unknown field"),
    "no comparison": ([{"row_count": 5}], "row_count: expected comparisons"),
    "infinite": ([{"row_count": {"leq_to": float("inf")}}], "row_count.leq_to: inf is not"),
    "elsewhere": ([{"row_count": {"leq_to": 1}, "on": "source"}], "on: 'source' is not one of"),
}


def _delete(checks: Any, **more: Any) -> DeleteFromOperator:
    return DeleteFromOperator(
        task_id="t", target="shop.orders", where="id = 1", checks=checks, **more
    )


@pytest.mark.parametrize("name", WRONG)
def test_wrong_checks_are_named_when_the_dag_is_parsed(name: str) -> None:
    checks, message = WRONG[name]
    with pytest.raises(JobError, match=message):
        _delete(checks)


def test_a_template_beside_them_hides_no_wrong_check() -> None:
    later = "SELECT * FROM {{ params.x }}"
    _delete([later])
    with pytest.raises(JobError, match=r"checks\[1\]: .*rand is not deterministic"):
        DeleteFromOperator(
            task_id="t", target="{{ params.t }}", where="id = 1", checks=[later, "SELECT rand()"]
        )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM changes HAVING count(*) > 5",
        "SELECT new.id, count(*) FROM changes GROUP BY new.id",
        "SELECT * FROM (SELECT count(*) AS n FROM changes) WHERE n > 5",
        "SELECT old.id, count(*) OVER () FROM changes",
        "SELECT (SELECT count(*) FROM target) FROM changes WHERE operation = 'insert'",
        "SELECT * FROM changes WHERE upper(operation) = 'UPDATE' OR operation LIKE 'D%'",
        "SELECT * FROM changes c JOIN new_rows f ON c.new.id = f.id WHERE f.operation = 'UPDATE'",
        "SELECT * FROM new_rows WHERE operation = 'UPDATE' AND d = DATE 'epoch'",
        "SELECT * FROM new_rows WHERE today = 'today' AND d > DATE '2024-01-01'",
    ],
)
def test_checks_that_mean_something_are_taken(query: str) -> None:
    _delete([query])


def test_names_that_look_like_functions_are_columns() -> None:
    _delete(["SELECT shuffle, c.uuid FROM changes c WHERE old.now > 1 AND `rand` = 2"])
    _delete(["SELECT unix_timestamp(old.t), unix_timestamp, reflect FROM changes"])
    _delete(["SELECT CAST('nowhere' AS STRING), to_date(old.d) FROM changes WHERE old.d = 'today'"])


def test_sources_are_read_by_name_also_by_checks_alone() -> None:
    sources = {"feed": table_source("shop.feed"), "known": table_source("shop.known")}
    check = "FROM new_rows n LEFT ANTI JOIN known k ON n.id = k.id"

    operator = MergeIntoOperator(task_id="t", sql=_TEXT, sources=sources, checks=[check])

    assert operator.row_checks()[0].sql.startswith("SELECT * FROM new_rows")
    with pytest.raises(JobError, match=r"sources.known: the statement never reads it"):
        MergeIntoOperator(task_id="t", sql=_TEXT, sources=sources)
    with pytest.raises(JobError, match=r"sources.changes: is what checks call the rows"):
        _delete(["SELECT 1 FROM changes"], sources={"changes": table_source("shop.feed")})


def test_checks_of_columns_become_queries() -> None:
    operator = InsertOverwriteOperator(
        task_id="t",
        target="shop.orders",
        mode="table",
        source=table_source("shop.feed"),
        checks=[
            {"column": "id", "not_null": True, "unique": True},
            {"column": "st.a", "accepted_values": ["x", "y's"], "in_range": (1, None)},
            {"column": "n", "max": {"geq_to": 1, "less_than": 5}, "null_check": {"equal_to": 0}},
            {"row_count": {"greater_than": 0}, "on": "target"},
        ],
    )

    assert operator.row_checks() == (
        RowCheck("id not_null", "SELECT * FROM new_rows WHERE `id` IS NULL"),
        RowCheck(
            "id unique",
            "SELECT `id`, count(*) AS `rows` FROM new_rows WHERE `id` IS NOT NULL GROUP BY `id` "
            "HAVING count(*) > 1",
        ),
        RowCheck(
            "st.a accepted_values",
            "SELECT * FROM new_rows WHERE `st`.`a` NOT IN ('x', 'y\\'s')",
        ),
        RowCheck("st.a in_range", "SELECT * FROM new_rows WHERE `st`.`a` < 1"),
        RowCheck(
            "n max",
            "SELECT * FROM (SELECT max(`n`) AS `max` FROM new_rows) WHERE NOT (`max` >= 1 AND "
            "`max` < 5)",
        ),
        RowCheck(
            "n null_check",
            "SELECT * FROM (SELECT count_if(`n` IS NULL) AS `null_check` FROM new_rows) WHERE NOT "
            "(`null_check` = 0)",
        ),
        RowCheck(
            "row_count in target",
            "SELECT * FROM (SELECT count(*) AS `row_count` FROM target) WHERE NOT (`row_count` > "
            "0)",
        ),
    )


def test_checks_need_a_session_and_belong_to_statements_of_lists() -> None:
    checks = ["SELECT * FROM changes WHERE old.id = 1"]
    truncate = TruncateTableOperator(task_id="t", target="shop.orders", checks=checks)
    assert truncate.needs_session()

    listed = delete_from("old", target="shop.orders", where="id = 1", checks=checks)
    StatementsOperator(task_id="t", statements=[listed])
    wrong = {**listed, "checks": ["SELECT rand()"]}
    with pytest.raises(JobError, match=r"checks\[0\]: .*rand is not deterministic"):
        StatementsOperator(task_id="t", statements=[wrong])
