"""Rows of real databases: types without loss, errors that name the place, no password anywhere."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.catalogs import scoped
from spark_jobs.contract.outside_sources import JdbcSource
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.session import fixed_meaning
from spark_jobs.engine.source.database import database_rows
from spark_jobs.errors import JobError
from spark_jobs.run import run
from tests.engine import jdbc_types
from tests.support import mariadb, postgresql
from tests.support.paimon_tables import create

JARS = Path("/usr/share/java")
PASSWORD = "planted-password-of-tests"
LOGIN = {"user": "reader", "password": PASSWORD}
NAME = TableName("db", "t")


@dataclass(frozen=True)
class Database:
    """A server with a user ``reader``; ``do`` runs statements as its owner."""

    name: str
    url: str
    do: Callable[[str], Any]
    typed: Sequence[jdbc_types.Typed]
    refused: Sequence[str]
    bad: Sequence[tuple[str, str]]

    def source(self, **more: Any) -> JdbcSource:
        return JdbcSource("s", "conn", url=self.url, **more)

    def table(self, columns: Sequence[tuple[str, str]]) -> str:
        """A new table with columns c0, c1 ... of types, and one row of values."""
        name = f"t{uuid.uuid4().hex[:8]}"
        declared = ", ".join(f"c{i} {kind}" for i, (kind, _) in enumerate(columns))
        values = ", ".join(value for _, value in columns)
        self.do(f"CREATE TABLE {name} ({declared}); INSERT INTO {name} VALUES ({values});")
        return name


def add_jar(spark: SparkSession, name: str, package: str) -> None:
    if not (JARS / name).exists():
        pytest.skip(f"there is no {JARS / name}: apt-get install {package}")
    spark.sql(f"ADD JAR {JARS / name}")


@pytest.fixture(scope="module")
def postgres(spark: SparkSession) -> Iterator[Database]:
    add_jar(spark, "postgresql.jar", "libpostgresql-jdbc-java")
    try:
        programs = postgresql.programs()
    except postgresql.NotInstalledError as missing:
        pytest.skip(str(missing))
    with postgresql.running(programs) as url:
        port = url.rpartition(":")[2].partition("/")[0]

        def do(text: str) -> None:
            place = ["-h", "127.0.0.1", "-p", port, "-U", "postgres"]
            command = ["psql", *place, "-v", "ON_ERROR_STOP=1", "-q"]
            subprocess.run(command, input=text, text=True, check=True, capture_output=True)

        do(
            f"CREATE USER reader PASSWORD '{PASSWORD}'; "
            "GRANT pg_read_all_data, pg_write_all_data TO reader;\n"
            "SHOW hba_file \\gset\n"
            "COPY (VALUES ('host all reader all scram-sha-256'), ('host all all all trust')) "
            "TO :'hba_file';\nSELECT pg_reload_conf() \\g /dev/null\n"
        )
        yield Database(
            *("postgresql", f"jdbc:postgresql://127.0.0.1:{port}/postgres", do),
            *(jdbc_types.POSTGRESQL, jdbc_types.POSTGRESQL_REFUSED, jdbc_types.POSTGRESQL_BAD),
        )


@pytest.fixture(scope="module")
def maria(spark: SparkSession) -> Iterator[Database]:
    add_jar(spark, "mariadb-java-client.jar", "libmariadb-java")
    try:
        with mariadb.running() as (port, socket):
            mariadb.do(
                socket,
                "CREATE DATABASE db CHARACTER SET utf8mb4; "
                f"CREATE USER reader@127.0.0.1 IDENTIFIED BY '{PASSWORD}'; "
                "GRANT ALL ON db.* TO reader@127.0.0.1;",
            )
            begin = "SET NAMES utf8mb4; SET sql_mode = ''; SET time_zone = '+00:00'; USE db; "
            yield Database(
                *("mariadb", f"jdbc:mysql://127.0.0.1:{port}/db"),
                lambda text: mariadb.do(socket, begin + text),
                *(jdbc_types.MARIADB, jdbc_types.MARIADB_REFUSED, jdbc_types.MARIADB_BAD),
            )
    except mariadb.NotInstalledError as missing:
        pytest.skip(str(missing))


@pytest.fixture(params=["postgres", "maria"])
def database(request: pytest.FixtureRequest) -> Database:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Database)
    return found


@pytest.fixture(autouse=True)
def meaning(spark: SparkSession) -> Iterator[None]:
    """As in jobs; a zone whose clock leaves an hour out."""
    with fixed_meaning(spark, "Europe/Paris"):
        yield


def rows(spark: SparkSession, source: JdbcSource) -> DataFrame:
    return database_rows(spark, source, LOGIN)


def failure(spark: SparkSession, source: JdbcSource, secrets: Any = None) -> JobError:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - translated below
        database_rows(spark, source, LOGIN if secrets is None else secrets).collect()
    error = translated(caught.value)
    assert PASSWORD not in f"{error.message} {error.remedy}"
    return error


@pytest.mark.slow
def test_each_type_without_loss(spark: SparkSession, database: Database) -> None:
    typed = database.typed
    name = database.table([(kind, value) for kind, value, _, _ in typed])
    nulls = ", ".join("NULL" for _ in typed)
    database.do(f"INSERT INTO {name} VALUES ({nulls});")
    found = rows(spark, database.source(table=name))
    assert [each.dataType.simpleString() for each in found.schema] == [each[2] for each in typed]
    # Times as text: Python's own zone is not the session's.
    shown = found.selectExpr(
        *(
            f"CAST({each.name} AS STRING) AS {each.name}" if "time" in kind[2] else each.name
            for each, kind in zip(found.schema, typed, strict=True)
        )
    )
    whole, empty = sorted(shown.collect(), key=lambda row: row[0] is None)
    expected = [_shown(kind, value) for _, _, kind, value in typed]
    for column, declared, value in zip(typed, whole, expected, strict=True):
        assert declared == value, column
    assert list(empty) == [None] * len(typed)


def _shown(kind: str, value: Any) -> Any:
    if "time" not in kind:
        return value
    if kind == "timestamp":  # in Paris
        value = value.replace(hour=value.hour + 1)
    text = value.isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


@pytest.mark.slow
@pytest.mark.by_turns(2)
def test_types_that_nothing_holds_are_refused_by_column(
    spark: SparkSession, database: Database
) -> None:
    for kind in database.refused:
        name = f"t{uuid.uuid4().hex[:8]}"
        database.do(f"CREATE TABLE {name} (id int, v {kind});")
        error = failure(spark, database.source(table=name))
        assert error.code.name == "NOT_SUPPORTED", kind
        assert "column v has the type" in error.message
        assert rows(spark, database.source(query=f"SELECT id FROM {name}")).collect() == []


@pytest.mark.slow
@pytest.mark.by_turns(2)
def test_values_that_spark_does_not_hold_name_their_column(
    spark: SparkSession, database: Database
) -> None:
    for kind, value in database.bad:
        name = database.table([("int", "1"), (kind, value)])
        error = failure(spark, database.source(table=name))
        assert (error.code.name, "source s: column c1 has " in error.message) == (
            "VALUE_NOT_STORABLE",
            True,
        ), (kind, value, error)


@pytest.mark.slow
def test_wrong_queries_and_logins(spark: SparkSession, database: Database) -> None:
    name = database.table([("int", "1"), ("int", "2")])
    wrong = {
        f"SELECT c0 AS a, c1 AS A FROM {name}": "AMBIGUOUS_REFERENCE",
        "SELECT c0 FROM gone": "SOURCE_UNREADABLE",
        "SELEC": "SOURCE_UNREADABLE",
        f"DELETE FROM {name}": "SOURCE_UNREADABLE",
        f"SELECT 1 AS a; DROP TABLE {name}": "SOURCE_UNREADABLE",
        f"SELECT 1 AS a) q; DROP TABLE {name}; SELECT * FROM (SELECT 1 AS b": "SOURCE_UNREADABLE",
    }
    for query, code in wrong.items():
        assert failure(spark, database.source(query=query)).code.name == code, query
    error = failure(spark, database.source(table=name), {**LOGIN, "password": "wrong-password"})
    assert (error.code.name, error.retryable) == ("SOURCE_UNREADABLE", False)
    assert "wrong-password" not in str(error)
    assert "connection conn" in error.remedy
    gone = JdbcSource("s", "conn", table=name, url=_without_server(database.url))
    error = failure(spark, gone)
    assert (error.code.name, error.retryable) == ("STORAGE_UNAVAILABLE", True)
    assert [tuple(row) for row in rows(spark, database.source(table=name)).collect()] == [(1, 2)]
    # A comment at the end belongs to the query, as people write it.
    kept = rows(spark, database.source(query=f"SELECT c0 FROM {name} -- all\n"))
    assert [tuple(row) for row in kept.collect()] == [(1,)]


def _without_server(url: str) -> str:
    start, _, rest = url.partition("127.0.0.1:")
    return f"{start}127.0.0.1:1/{rest.partition('/')[2]}"


def test_another_database_and_a_missing_driver(spark: SparkSession) -> None:
    oracle = JdbcSource("s", "conn", table="t", url="jdbc:oracle:thin:@h:1521/x")
    assert failure(spark, oracle).code.name == "NOT_SUPPORTED"


@pytest.mark.slow
def test_ranges_are_read_at_once(spark: SparkSession, database: Database) -> None:
    name = database.table([("int", "1"), ("bigint", "NULL")])
    values = ", ".join(f"({i}, {i * 10})" for i in range(2, 101))
    database.do(f"INSERT INTO {name} VALUES {values};")
    source = database.source(table=name, partition_by="C1", partitions=4, fetch_size=7)
    found = rows(spark, source)
    assert found.rdd.getNumPartitions() == 4
    assert sorted(row[0] for row in found.collect()) == [*range(1, 101)]
    database.do(f"INSERT INTO {name} VALUES (101, 9223372036854775807);")
    assert rows(spark, source).count() == 101
    for column, code in (("gone", "COLUMN_NOT_FOUND"), ("c2", "TYPE_MISMATCH")):
        query = f"SELECT t.*, 'x' AS c2 FROM {name} t"
        source = database.source(query=query, partition_by=column, partitions=2)
        assert failure(spark, source).code.name == code


@dataclass
class Lake:
    spark: SparkSession
    catalog: CatalogSpec

    def run(self, text: str, source: JdbcSource, **more: Any) -> JobResult:
        parsed = parse_statement(text, [source.name])
        request = JobRequest(
            *(str(uuid.uuid4()), parsed.target, self.catalog, parsed.statement),
            sources=(source, *parsed.sources),
            **more,
        )
        assert PASSWORD not in request.to_json()
        return run(request, self.spark, scoped("conn", LOGIN))

    def rows(self) -> list[tuple[Any, ...]]:
        connector = open_connector(self.catalog, {})
        table = connector.metadata.load_table(NAME)
        files = connector.metadata.plan_files(table)
        frame = connector.scan.read(self.spark, table, files, table.column_names)
        return sorted(tuple(row[:2]) for row in frame.collect())


MERGE = (
    "MERGE INTO db.t USING (SELECT a.c0, a.c1 FROM s a JOIN s b ON a.c0 = b.c0) x ON t.id = x.c0 "
    "WHEN MATCHED THEN UPDATE SET v = x.c1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (c0, c1)"
)


@pytest.mark.slow
def test_a_merge_reads_a_database_once(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    lake = Lake(spark, CatalogSpec("paimon", str(warehouse)))
    create(open_connector(lake.catalog, {}), {"id": "bigint", "v": "string"}, name=NAME)
    name = database.table([("bigint", "1"), ("varchar(9)", "'one'")])
    database.do(f"INSERT INTO {name} VALUES (2, 'two');")
    # Each reading of a volatile query would have other values.
    volatile = "random()" if database.name == "postgresql" else "rand()"
    query = f"SELECT c0, c1, {volatile} AS r FROM {name}"
    once = MERGE.replace("a.c0 = b.c0", "a.r = b.r")
    done = lake.run(once, database.source(query=query))
    assert done.error is None, done.error
    assert (done.metrics.inserted, done.metrics.sources["s"].records) == (2, 2)
    assert lake.rows() == [(1, "one"), (2, "two")]

    # The table of the database changes: its error leaves the target as it is.
    database.do(f"ALTER TABLE {name} DROP COLUMN c1;")
    failed = lake.run(MERGE, database.source(table=name))
    assert failed.error is not None
    assert failed.error.code in ("COLUMN_NOT_FOUND", "EXPRESSION_INVALID", "SOURCE_UNREADABLE")
    assert lake.rows() == [(1, "one"), (2, "two")]
    assert _found(PASSWORD, warehouse) == []


def _found(secret: str, folder: Path) -> list[str]:
    files = [each for each in folder.rglob("*") if each.is_file()]
    return [str(each) for each in files if secret.encode() in each.read_bytes()]


@pytest.mark.slow
def test_other_columns_than_before(spark: SparkSession, postgres: Database, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    lake = Lake(spark, CatalogSpec("paimon", str(warehouse)))
    create(open_connector(lake.catalog, {}), {"id": "bigint", "v": "string"}, name=NAME)
    merge = "MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    query = "SELECT 1::bigint AS id, 'a' AS v, 2::int AS more"
    parsed = parse_statement(merge.replace("INTO", "WITH SCHEMA EVOLUTION INTO"), ["s"])
    assert getattr(parsed.statement, "schema_evolution", False)
    done = lake.run(
        merge.replace("INTO", "WITH SCHEMA EVOLUTION INTO"), postgres.source(query=query)
    )
    assert done.error is None, done.error
    assert any("more" in each for each in done.schema_changes), json.dumps(done.schema_changes)
