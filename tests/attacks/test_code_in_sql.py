"""Texts that do more than compute rows: they are refused before anything of them is looked up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource
from spark_jobs.contract.result import ErrorInfo, JobResult
from spark_jobs.contract.text_limits import TextLimits
from spark_jobs.run import run
from tests.attacks.asked import asked
from tests.support.paimon_tables import NAME, create, snapshot_ids

CODE = "reflect('java.lang.System', 'setProperty', 'attack', '{mark}')"
PROGRAM = "SELECT TRANSFORM (id) USING 'touch {mark}' AS (id STRING) FROM VALUES (1) AS s(id)"
# What is no query, or hides what is none.
STATEMENTS = {
    "DROP": "DROP TABLE IF EXISTS a.b",
    "ADD JAR": "ADD JAR '{mark}'",
    "ADD FILE": "ADD FILE '{mark}'",
    "SET": "SET spark.sql.ansi.enabled = false",
    "SET a variable": "SET VAR x = 1",
    "DECLARE": "DECLARE x INT DEFAULT 1",
    "CREATE TABLE AS": "CREATE TABLE t USING csv LOCATION '{mark}' AS SELECT 1 AS id",
    "CREATE VIEW": "CREATE TEMPORARY VIEW v AS SELECT 1 AS id",
    "CREATE FUNCTION": "CREATE TEMPORARY FUNCTION f AS 'com.example.F'",
    "INSERT": "INSERT OVERWRITE DIRECTORY '{mark}' USING csv SELECT 1 AS id",
    "INSERT behind WITH": "WITH a AS (SELECT 1 AS id) "
    "INSERT OVERWRITE DIRECTORY '{mark}' USING csv SELECT * FROM a",
    "INSERTs": "FROM VALUES (1) AS s(id) INSERT OVERWRITE DIRECTORY '{mark}' USING csv SELECT id "
    "INSERT OVERWRITE DIRECTORY '{mark}2' USING csv SELECT id",
    "CACHE": "CACHE TABLE t AS SELECT 1 AS id",
    "EXPLAIN": "EXPLAIN SELECT 1",
    "SHOW": "SHOW TABLES",
    "EXECUTE IMMEDIATE": "EXECUTE IMMEDIATE 'DROP TABLE a.b'",
    "a script": "BEGIN INSERT OVERWRITE DIRECTORY '{mark}' USING csv SELECT 1 AS id; END",
    "LOAD": "LOAD DATA INPATH '{mark}' INTO TABLE t",
}
# Queries with code at each place that a query has.
QUERIES = {
    "a program": PROGRAM,
    "MAP": "FROM VALUES (1) AS s(id) MAP id USING 'touch {mark}' AS (id STRING)",
    "a program in a CTE": f"WITH a AS ({PROGRAM}) SELECT * FROM a",
    "a program in a subquery": f"SELECT 1 AS id WHERE EXISTS ({PROGRAM})",
    "SELECT": f"SELECT {CODE} AS id",
    "in another function": f"SELECT upper(concat('a', {CODE})) AS id",
    "java_method": f"SELECT {CODE} AS id".replace("reflect", "JAVA_Method"),
    "try_reflect": f"SELECT {CODE} AS id".replace("reflect", "`try_reflect`"),
    "WHERE": f"SELECT 1 AS id WHERE {CODE} IS NULL",
    "HAVING": f"SELECT 1 AS id GROUP BY id HAVING max({CODE}) IS NULL",
    "GROUP BY": f"SELECT 1 AS id GROUP BY GROUPING SETS (({CODE}), ())",
    "ORDER BY": f"SELECT 1 AS id ORDER BY {CODE}",
    "a window": f"SELECT sum(1) OVER (PARTITION BY {CODE}) AS id",
    "WINDOW": f"SELECT sum(1) OVER w AS id WINDOW w AS (PARTITION BY {CODE})",
    "WINDOW with a subquery": f"SELECT sum(1) OVER w AS id WINDOW w AS (ORDER BY ({PROGRAM}))",
    "FILTER": f"SELECT count(*) FILTER (WHERE {CODE} IS NULL) AS id",
    "JOIN": f"SELECT 1 AS id FROM VALUES (1) AS a(x) JOIN VALUES (1) AS b(x) ON {CODE} IS NULL",
    "VALUES": f"VALUES ({CODE})",
    "FROM VALUES": f"SELECT * FROM VALUES (1, {CODE}) AS s(id, x)",
    "a subquery": f"SELECT (SELECT max({CODE})) AS id",
    "IN": f"SELECT 1 AS id WHERE 'a' IN (SELECT {CODE})",
    "a CTE": f"WITH a AS (SELECT {CODE} AS id) SELECT * FROM a",
    "a CTE in a CTE": f"WITH a AS (WITH b AS (SELECT {CODE} AS id) SELECT * FROM b) TABLE a",
    "LATERAL": f"SELECT l.* FROM VALUES (1) AS s(id), LATERAL (SELECT {CODE} AS id) AS l",
    "LATERAL VIEW": "SELECT x AS id FROM VALUES (1) AS s(y) "
    f"LATERAL VIEW explode(array({CODE})) AS x",
    "a table function": f"SELECT * FROM explode(array({CODE}))",
    "a lambda": f"SELECT transform(array(1), x -> {CODE}) AS id",
    "PIVOT": f"SELECT * FROM VALUES (1) AS s(id) PIVOT (max({CODE}) FOR id IN (1))",
    "UNION": f"SELECT '1' AS id UNION ALL SELECT {CODE}",
    "a computed name": "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'gc') AS id",
    "a computed relation": "SELECT * FROM IDENTIFIER('csv.`' || '{mark}`')",
    "another's function": "SELECT com_example_f(1) AS id",
    "another's function in a database": "SELECT udfs.f(1) AS id",
    "another's table function": "SELECT * FROM com_example_f(1)",
    "another's generator": "SELECT 1 AS id FROM VALUES (1) AS s(y) LATERAL VIEW com_f(y) AS x",
    "a class of files": "SELECT * FROM `org.apache.spark.sql.execution.datasources.csv."
    "CSVFileFormat`.`{mark}`",
}
WRITTEN = {
    "SET": f"UPDATE {NAME} SET v = {CODE}",
    "WHERE": f"DELETE FROM {NAME} WHERE {CODE} IS NULL",
    "WHERE with a subquery": f"DELETE FROM {NAME} WHERE v IN (SELECT {CODE})",
    "WHERE with a program": f"DELETE FROM {NAME} WHERE EXISTS ({PROGRAM})",
    "ON": f"MERGE INTO {NAME} t USING (SELECT 1 AS id) s ON t.id = s.id AND {CODE} IS NULL "
    "WHEN MATCHED THEN DELETE",
    "a condition": f"MERGE INTO {NAME} t USING (SELECT 1 AS id) s ON t.id = s.id "
    f"WHEN MATCHED AND {CODE} IS NULL THEN DELETE",
    "a value": f"MERGE INTO {NAME} t USING (SELECT 1 AS id) s ON t.id = s.id "
    f"WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, {CODE})",
    "INSERT": f"INSERT INTO {NAME} SELECT 1, {CODE}",
    "INSERT a program": f"INSERT INTO {NAME} SELECT *, 'x' FROM ({PROGRAM})",
    "INSERT WITH": f"INSERT INTO {NAME} WITH a AS (SELECT 1) "
    "INSERT OVERWRITE DIRECTORY '{mark}' USING csv SELECT * FROM a",
    "INSERT OVERWRITE": f"INSERT OVERWRITE {NAME} SELECT 1, {CODE}",
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> CatalogSpec:
    catalog = CatalogSpec("paimon", str(tmp_path_factory.mktemp("lake")))
    create(open_connector(catalog, {}), {"id": "int", "v": "string"})
    return catalog


@pytest.fixture(scope="module", autouse=True)
def others_functions(spark: SparkSession) -> Iterator[None]:
    """Functions of somebody in the session's catalog; their class would be loaded by a call."""
    names = ("com_f", "com_example_f")
    for name in names:
        spark.sql(f"CREATE FUNCTION {name} AS 'com.example.F'")
    yield
    for name in names:
        spark.sql(f"DROP FUNCTION {name}")


@pytest.fixture
def mark(tmp_path: Path, spark: SparkSession) -> Path:
    """What an attack that had success leaves: a file of this name, or a property of Java."""
    spark.sparkContext._jvm.java.lang.System.clearProperty("attack")  # type: ignore[union-attr]
    return tmp_path / "mark"


def refused(spark: SparkSession, mark: Path, result: JobResult) -> ErrorInfo:
    """The error of a job, after which nothing of the text has run."""
    assert result.error is not None
    assert result.error.code == "NOT_SUPPORTED", result.error
    java = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]
    assert (java.getProperty("attack"), list(mark.parent.glob("mark*"))) == (None, [])
    return result.error


@pytest.mark.parametrize("text", STATEMENTS.values(), ids=STATEMENTS)
@pytest.mark.parametrize("allow_code", [False, True])
def test_what_is_no_query(
    spark: SparkSession, lake: CatalogSpec, mark: Path, text: str, allow_code: bool
) -> None:
    request = asked(lake, text.replace("{mark}", str(mark)), TextLimits(allow_code))

    error = refused(spark, mark, run(request, spark))

    assert "query of source q: it is not a query" in error.message


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_queries_with_code(spark: SparkSession, lake: CatalogSpec, mark: Path, text: str) -> None:
    error = refused(spark, mark, run(asked(lake, text.replace("{mark}", str(mark))), spark))

    assert "query of source q: " in error.message
    assert "[merge] allow_code_in_sql" in error.remedy or "WINDOW" in error.message


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_statements_with_code(
    spark: SparkSession, lake: CatalogSpec, mark: Path, text: str, dry_run: bool
) -> None:
    parsed = parse_statement(text.replace("{mark}", str(mark)))
    request = JobRequest("one", NAME, lake, parsed.statement, parsed.sources, dry_run=dry_run)

    refused(spark, mark, run(request, spark))

    assert snapshot_ids(open_connector(lake, {})) == []


def test_a_source_behind_another(spark: SparkSession, lake: CatalogSpec, mark: Path) -> None:
    sources = (SqlSource("a", f"SELECT {CODE} AS id"), SqlSource("q", "SELECT id, 'x' FROM a"))
    request = JobRequest("one", NAME, lake, InsertIntoSpec("q"), sources)

    error = refused(spark, mark, run(request, spark))

    assert error.message == "query of source a: the function reflect runs code"


def test_who_needs_code_says_so(spark: SparkSession, lake: CatalogSpec, mark: Path) -> None:
    query = "SELECT reflect('java.lang.Math', 'abs', -1) AS id"

    result = run(asked(lake, query, TextLimits(allow_code=True)), spark)

    assert result.error is None
    assert result.query is not None
    assert result.query.rows == (("1",),)
