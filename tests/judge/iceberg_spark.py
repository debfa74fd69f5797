"""Spark with Iceberg's own runtime, in a process of its own: it makes, changes and reads tables."""

from __future__ import annotations

import datetime as dt
import multiprocessing
import traceback
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any, Final

import pytest

from tests.judge.iceberg_steps import IcebergSteps
from tests.judge.toolchain import Jar, JudgeMissingError, fetched_jar
from tests.support.optional_packages import require_package
from tests.support.spark_session import INTERPRETED

JARS: Final = (
    Jar(
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
    Jar(
        "org.xerial:sqlite-jdbc:3.50.3.0",
        "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08",
    ),
)
# The catalog's name, in the session and in the database.
CATALOG: Final = "ice"
# In milliseconds.
_FAR_AWAY: Final = 2**50


class IcebergSparkError(Exception):
    """A statement failed; the text is Spark's."""


class IcebergSpark:
    """A session with a SQL catalog in ``folder``: ``catalog.db``, tables in ``warehouse``.

    Or with another ``catalog``, of these properties.
    """

    def __init__(self, folder: Path, catalog: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.warehouse.mkdir(parents=True, exist_ok=True)
        jars = [str(fetched_jar(jar)) for jar in JARS]
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._turn = Lock()
        properties = catalog or {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
            "jdbc.schema-version": "V1",
        }
        self._process = context.Process(target=_serve, args=(theirs, jars, dict(properties)))
        self._process.start()
        theirs.close()
        self._answer()

    @property
    def options(self) -> dict[str, str]:
        """The catalog for a ``CatalogSpec``."""
        return {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"file://{self.warehouse}",
            "catalog-name": CATALOG,
        }

    def library(self) -> Any:
        """The catalog as pyiceberg opens it."""
        from pyiceberg.catalog.sql import SqlCatalog

        options = self.options
        return SqlCatalog(CATALOG, uri=options["uri"], warehouse=options["warehouse"])

    def sql(self, *statements: str) -> list[dict[str, Any]]:
        """Run statements; the rows of the last one.

        Raises:
            IcebergSparkError: a statement failed.
        """
        return self._asked("sql", *statements)

    def expire(self, table: str) -> None:
        """Let Iceberg's library, without Spark, expire all snapshots of a table but the last.

        Raises:
            IcebergSparkError: it failed.
        """
        self._asked("expire", table)

    def append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Let Iceberg's library, without Spark, write rows to a new file, but none with BIGINT.

        Raises:
            IcebergSparkError: it failed.
        """
        self._asked("append", table, rows)

    def steps(self, table: str, *steps: tuple[Any, ...]) -> list[dict[str, Any]]:
        """Let Iceberg's library take steps of ``IcebergSteps``, each with its arguments.

        Raises:
            IcebergSparkError: one failed.
        """
        return self._asked("steps", table, steps)

    def records(self, table: str) -> list[dict[str, Any]]:
        """The rows as Iceberg's library, without Spark, reads them, with some values as texts.

        Raises:
            IcebergSparkError: it failed.
        """
        return self._asked("records", table)

    def _asked(self, *request: Any) -> list[dict[str, Any]]:
        with self._turn:
            self._pipe.send(request)
            return self._answer()

    def _answer(self) -> list[dict[str, Any]]:
        try:
            failed, answer = self._pipe.recv()
        except EOFError:
            raise IcebergSparkError("the process has ended") from None
        if failed:
            raise IcebergSparkError(answer)
        rows: list[dict[str, Any]] = answer
        return rows

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(30)


@pytest.fixture(scope="session")
def iceberg_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSpark]:
    """The one session of a test run; skips where it cannot run, with the reason."""
    require_package("sqlalchemy")
    try:
        judge = IcebergSpark(tmp_path_factory.mktemp("ice berg"))
    except JudgeMissingError as missing:
        pytest.skip(f"no Spark with Iceberg: {missing}")
    with closing(judge):
        yield judge


def _serve(pipe: Connection, jars: list[str], properties: dict[str, str]) -> None:
    from pyspark.sql import SparkSession

    catalog = f"spark.sql.catalog.{CATALOG}"
    settings = {
        "spark.jars": ",".join(jars),
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        **INTERPRETED,
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.cache-enabled": "false",
        **{f"{catalog}.{name}": value for name, value in properties.items()},
    }
    builder = SparkSession.builder.master("local[2]").appName("judge")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.db")
    pipe.send((False, []))
    acts = {
        "sql": partial(_rows, session),
        "expire": partial(_expire, session),
        "append": partial(_append, session),
        "records": partial(_records, session),
        "steps": partial(_steps, session),
    }
    while True:
        try:
            act, *arguments = pipe.recv()
        except EOFError:
            session.stop()
            return
        try:
            pipe.send((False, acts[act](*arguments)))
        except Exception:  # noqa: BLE001 - the other process decides
            pipe.send((True, traceback.format_exc()))


def _steps(session: Any, name: str, steps: Sequence[tuple[str, ...]]) -> list[dict[str, Any]]:
    found = []
    for step, *arguments in steps:
        # Each on the table as it is by then.
        table = IcebergSteps(session.sparkContext._gateway, _table(session, name))
        found.append(getattr(table, step)(*arguments) or {})
    return found


def _rows(session: Any, *statements: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for text in statements:
        rows = [row.asDict(recursive=True) for row in session.sql(text).collect()]
    return rows


def _expire(session: Any, name: str) -> list[dict[str, Any]]:
    _table(session, name).expireSnapshots().expireOlderThan(_FAR_AWAY).retainLast(1).commit()
    return []


def _append(session: Any, name: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    table, java = _table(session, name), session._jvm
    iceberg = java.org.apache.iceberg
    path = f"{table.location()}/data/java-{uuid.uuid4()}.parquet"
    output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(
        table.io().newOutputFile(path)
    )
    builder = getattr(iceberg.data, "GenericFileWriterFactory$Builder")
    writer = builder(table).build().newDataWriter(output, table.spec(), None)
    for row in rows:
        writer.write(_record(java, table.schema().asStruct(), row))
    writer.close()
    table.newAppend().appendFile(writer.toDataFile()).commit()
    return []


def _record(java: Any, struct: Any, values: Mapping[str, Any]) -> Any:
    record = java.org.apache.iceberg.data.GenericRecord.create(struct)
    for name, value in values.items():
        record.setField(name, _java_value(java, struct.fieldType(name), value))
    return record


def _java_value(java: Any, kind: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _record(java, kind.asStructType(), value)
    if isinstance(value, uuid.UUID):
        return java.java.util.UUID.fromString(str(value))
    if isinstance(value, dt.time):
        return java.java.time.LocalTime.parse(value.isoformat())
    return value


def _records(session: Any, name: str) -> list[dict[str, Any]]:
    table = _table(session, name)
    columns = [each.name() for each in table.schema().columns()]
    found = session._jvm.org.apache.iceberg.data.IcebergGenerics.read(table).build()
    records, rows = found.iterator(), []
    while records.hasNext():
        record = records.next()
        rows.append({column: _python_value(record.getField(column)) for column in columns})
    found.close()
    return rows


def _python_value(value: Any) -> Any:
    return value.toString() if hasattr(value, "getClass") else value


def _table(session: Any, name: str) -> Any:
    util = session._jvm.org.apache.iceberg.spark.Spark3Util
    return util.loadIcebergTable(session._jsparkSession, f"{CATALOG}.{name}")
