"""Which texts of ``sql`` are paths of files: those that are no statement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_merge.operators._shared.sql_parameter import FIRST_WORDS, names_sql_file
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.statement_list import sql_statement
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.update import UpdateOperator
from airflow_provider_merge.sql.create_table import parse_create_table
from airflow_provider_merge.sql.parser import parse_query, parse_statement
from spark_jobs.errors import JobError
from tests.airflow.contexts import DAY

BEFORE = ["", " ", "\ufeff", "(", "{% set x = 1 %}", "{% set x %}{% endset %} ", "{{ hint }} "]
COMMENTS = ["/* x */", "-- ", "{# note #}", "{# a.sql #} ", "/*+ x */"]
BEGINNINGS = [
    *("SELECT *", "SELECT*", "select(1)", "SELECT'x'", 'SELECT"x"', "SELECT`x`", "SELECT/**/1"),
    *("WITH x AS(", "WITH x AS (SELECT 1)", "INSERT/**/INTO", "INSERT INTO", "insert\tinto"),
    *("UPDATE a.b", "DELETE FROM", "MERGE INTO", "TRUNCATE TABLE", "ALTER TABLE", "CREATE TABLE"),
    *("SET a.b=c;", "FROM x", "VALUES(1)", "TABLE a", "SELECT{# x #}1", "DROP TABLE"),
]
ENDS = ["a.sql", " FROM a.sql", " -- see x.sql", " SET n = {{ params.n }}.sql", "{{ x }}.sql"]
FOLDERS = [
    *(
        "",
        "sql/",
        "./",
        "../",
        "a b/",
        "{{ params.folder }}/",
        "{% if x %}a{% else %}b{% endif %}/",
    ),
    *("select/", "with-x/", "(old)/", "/opt/dags/", "tabelle ä/", "{{ ds }}-", "update.", "o'x/"),
]
NAMES = ["x", "merge", "SELECT", "insert_1", "a b", "{{ params.name }}", "set-up", "x (1)", "täg"]


@given(
    st.sampled_from(BEFORE),
    st.sampled_from(["", *COMMENTS]),
    st.sampled_from(BEGINNINGS),
    st.sampled_from(ENDS),
)
def test_statements_are_text(before: str, comment: str, beginning: str, end: str) -> None:
    assert not names_sql_file(f"{before}{comment}{beginning}{end}")


@given(st.sampled_from(BEFORE[:-1]), st.sampled_from(COMMENTS), st.sampled_from(NAMES))
def test_comments_are_text(before: str, comment: str, name: str) -> None:
    assert not names_sql_file(f"{before}{comment}{name}.sql")


@given(st.lists(st.sampled_from(FOLDERS), max_size=3), st.sampled_from(NAMES))
def test_paths_are_files(folders: list[str], name: str) -> None:
    assert names_sql_file(f"{''.join(folders)}{name}.sql")


READS = {
    "a MERGE": "MERGE INTO a.b USING a.s ON b.id=s.id WHEN MATCHED THEN UPDATE SET n=s.sql",
    "an UPDATE": "UPDATE a.b SET n=b.sql",
    "a DELETE": "DELETE FROM a.b WHERE b.sql",
    "an INSERT": "INSERT/**/INTO a.b SELECT * FROM a.sql",
    "an INSERT behind SET": "SET spark.sql.sources.partitionOverwriteMode=dynamic;"
    "INSERT OVERWRITE a.b SELECT*FROM a.sql",
    "an INSERT behind WITH": "WITH x AS(SELECT 1) INSERT INTO a.b SELECT*FROM a.sql",
    "a TRUNCATE": "TRUNCATE/**/TABLE a.sql",
    "a MERGE behind a mark": "\ufeffMERGE INTO a.b USING a.s ON b.id=s.sql "
    "WHEN MATCHED THEN DELETE -- x.sql",
}


@pytest.mark.parametrize("text", READS.values(), ids=READS)
def test_what_is_read_is_no_path(text: str) -> None:
    assert parse_statement(text)  # type: ignore[truthy-bool]
    assert not names_sql_file(text)


@pytest.mark.parametrize(
    "text", ["SELECT*FROM a.sql", "SELECT(1)FROM a.sql", "(SELECT 1) UNION(SELECT 2) -- x.sql"]
)
def test_queries_are_no_paths(text: str) -> None:
    assert parse_query(text)
    assert not names_sql_file(text)


def accepts(read: Callable[..., Any], text: str) -> bool:
    """Whether ``read`` takes the first word of the text as the beginning of something."""
    try:
        read(text)
    except JobError as error:
        return not any(
            told in error.message for told in ("does not start", "is not a part", "expected CREATE")
        )
    return True


def test_the_first_words_are_those_that_are_read() -> None:
    from sqlglot.dialects.spark import Spark

    words = {each for each in Spark.Tokenizer.KEYWORDS if each.isalpha()}
    readers = (parse_statement, parse_query, parse_create_table)
    read = {each for each in words if any(accepts(reader, f"{each} x") for reader in readers)}
    assert read
    assert read <= FIRST_WORDS


def test_a_text_stays_what_it_is_in_a_task(tmp_path: Path) -> None:
    texts = ["{# daily #}UPDATE a.b SET n=b.sql", "{% set t = 'a.b' %}UPDATE {{ t }} SET n=b.sql"]
    with DAG("d", schedule=None, start_date=DAY, template_searchpath=str(tmp_path)) as dag:
        for number, text in enumerate(texts):
            UpdateOperator(task_id=f"t{number}", sql=text)
            StatementsOperator(task_id=f"l{number}", statements=[sql_statement("s", text)])
        QueryOperator(task_id="q", sql="SELECT(1)FROM a.sql")
    dag.resolve_template_files()
    assert [dag.task_dict[f"t{number}"].sql for number in range(2)] == texts
    assert dag.task_dict["q"].sql_file == ""


def test_a_file_that_is_not_there_is_told_with_the_remedy(tmp_path: Path) -> None:
    with DAG("d", schedule=None, start_date=DAY, template_searchpath=str(tmp_path)) as dag:
        UpdateOperator(task_id="t", sql="SELECT-1 FROM a.sql")
    with pytest.raises(JobError, match=r"task 't': sql: there is no file .* a blank behind its"):
        dag.resolve_template_files()
