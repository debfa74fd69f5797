"""Databases as sources: the query runs there as it is written, its columns come without loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError

from spark_jobs.contract.outside_sources import JdbcSource
from spark_jobs.contract.source_names import source_text
from spark_jobs.engine.analysis.store_assignment import raised
from spark_jobs.engine.runtime.failures import shortened
from spark_jobs.engine.runtime.java_names import java_class
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.engine.source.database_types import (
    Reading,
    RemoteColumn,
    mysql_reading,
    postgresql_reading,
)
from spark_jobs.errors import (
    AnalysisError,
    CatalogError,
    ErrorCode,
    InternalError,
    JobError,
    NotSupportedError,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SECONDS: Final = 30
_MOST_CAUSES: Final = 20
_GREATEST: Final = 2**63 - 1
_OLDEST_POSTGRESQL: Final = 14


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What is of a kind of database: its drivers with what brings them, and how it is spoken to.

    ``read_only``: the statement after which a session changes nothing.
    """

    drivers: Mapping[str, str]
    properties: Mapping[str, str]
    read_only: str
    mark: str
    reading: Callable[[RemoteColumn], Reading | None]
    text_type: str

    def quoted(self, name: str) -> str:
        return f"{self.mark}{name.replace(self.mark, self.mark * 2)}{self.mark}"


_DIALECTS: Final = {
    "jdbc:postgresql:": _Dialect(
        {"org.postgresql.Driver": "org.postgresql:postgresql:42.7.7"},
        {"connectTimeout": str(_SECONDS)},
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        '"',
        postgresql_reading,
        "text",
    ),
    "jdbc:mysql:": _Dialect(
        {
            "com.mysql.cj.jdbc.Driver": "com.mysql:mysql-connector-j:9.3.0",
            "org.mariadb.jdbc.Driver": "org.mariadb.jdbc:mariadb-java-client:3.5.3",
        },
        {
            "connectTimeout": str(_SECONDS * 1000),
            "permitMysqlScheme": "true",
            "tinyInt1isBit": "false",
            "useCursorFetch": "true",
            "useServerPrepStmts": "true",
            "yearIsDateType": "false",
        },
        "SET SESSION TRANSACTION READ ONLY",
        "`",
        mysql_reading,
        "CHAR",
    ),
}


def database_rows(spark: SparkSession, source: JdbcSource, secrets: Mapping[str, str]) -> DataFrame:
    """The rows of ``source``, of which none is read yet.

    Raises:
        RequestError: it has no address.
        CatalogError: LIBRARY_MISSING: no driver. SOURCE_UNREADABLE: the database refused.
        InternalError: STORAGE_UNAVAILABLE: the database does not answer.
        AnalysisError: AMBIGUOUS_REFERENCE: two columns have one name; COLUMN_NOT_FOUND.
        NotSupportedError: another database, or a column of a type that is not read exactly.
    """
    url = source.url or ""
    dialect = next((each for start, each in _DIALECTS.items() if url.startswith(start)), None)
    if dialect is None:
        raise NotSupportedError(
            f"{source_text(source)}: {url or 'no address'} is no database whose types are known.",
            "PostgreSQL, MySQL and MariaDB are; use python_source for others.",
        )
    return _Database(spark, source, dialect, secrets).rows()


@dataclass(frozen=True, slots=True)
class _Database:
    spark: SparkSession
    source: JdbcSource
    dialect: _Dialect
    secrets: Mapping[str, str]

    def rows(self) -> DataFrame:
        driver = self._driver()
        with self._explained():
            columns, limits = self._asked(driver)
        readings = [self._reading(each) for each in columns]
        remote = ", ".join(
            f"{reading.remote.format(c=self.dialect.quoted(column.name))} AS c{index}"
            for index, (column, reading) in enumerate(zip(columns, readings, strict=True))
        )
        reader = self.spark.read.format("jdbc").options(
            url=self.source.url or "",
            dbtable=f"(SELECT {remote} FROM ({self.source.text}\n) q) merge_rows",
            driver=driver.getClass().getName(),
            fetchsize=str(self.source.fetch_size),
            sessionInitStatement=self.dialect.read_only,
            **dict.fromkeys(_PUSHED, "false"),
            **self._properties(),
        )
        if limits is not None:
            reader = reader.options(**limits)
        with self._explained():
            found = reader.load()
        return found.selectExpr(
            *(
                self._local(column, reading, f"c{index}")
                for index, (column, reading) in enumerate(zip(columns, readings, strict=True))
            )
        )

    def _properties(self) -> dict[str, str]:
        return {**self.dialect.properties, **self.source.properties, **self.secrets}

    def _driver(self) -> Any:
        """A driver of the database, from the jars of the session."""
        threads = java_class(self.spark, "java.lang.Thread")
        loader = threads.currentThread().getContextClassLoader()
        for name in self.dialect.drivers:
            with suppress(Py4JJavaError):
                return loader.loadClass(name).getDeclaredConstructor(None).newInstance(None)
        name, package = next(iter(self.dialect.drivers.items()))
        raise CatalogError(
            ErrorCode.LIBRARY_MISSING,
            f"{source_text(self.source)}: no jar of the session has the JDBC driver "
            f"{' or '.join(self.dialect.drivers)}.",
            f"Set conf={{'spark.jars.packages': '{package}'}}, or spark.jars to the path of its "
            "jar.",
        )

    def _asked(self, driver: Any) -> tuple[list[RemoteColumn], dict[str, str] | None]:
        """The columns of the query, and how Spark divides it."""
        properties = java_class(self.spark, "java.util.Properties")()
        for name, value in self._properties().items():
            properties.setProperty(name, value)
        connection = driver.connect(self.source.url, properties)
        try:
            self._require_version(connection)
            begun = connection.createStatement()
            begun.execute(self.dialect.read_only)
            begun.close()
            columns = self._columns(connection)
            return columns, self._limits(connection, columns)
        finally:
            with suppress(Py4JError):
                connection.close()

    def _require_version(self, connection: Any) -> None:
        version = connection.getMetaData().getDatabaseMajorVersion()
        if self.dialect.mark == '"' and version < _OLDEST_POSTGRESQL:
            raise NotSupportedError(
                f"{source_text(self.source)}: PostgreSQL {version} rounds microseconds of times.",
                f"Use PostgreSQL {_OLDEST_POSTGRESQL} or newer.",
            )

    def _columns(self, connection: Any) -> list[RemoteColumn]:
        statement = connection.prepareStatement(self.source.text)
        try:
            metadata = statement.getMetaData()
            if metadata is None:
                # A driver that does not ask the server: it tells what is wrong, too.
                again = f"SELECT * FROM ({self.source.text}\n) q LIMIT 0"
                metadata = connection.createStatement().executeQuery(again).getMetaData()
            if not metadata.getColumnCount():
                raise NotSupportedError(
                    f"{source_text(self.source)}: it is no query: it has no columns.",
                    "Write one SELECT.",
                )
            columns = [
                RemoteColumn(
                    metadata.getColumnLabel(at),
                    metadata.getColumnTypeName(at),
                    metadata.getColumnType(at),
                    metadata.getPrecision(at),
                    metadata.getScale(at),
                    metadata.isSigned(at),
                )
                for at in range(1, metadata.getColumnCount() + 1)
            ]
        finally:
            statement.close()
        lowered = [each.name.lower() for each in columns]
        for column in columns:
            if lowered.count(column.name.lower()) > 1:
                raise AnalysisError(
                    ErrorCode.AMBIGUOUS_REFERENCE,
                    f"{source_text(self.source)}: several columns are called {column.name}",
                    "Give them different names in the query (AS).",
                    name=column.name,
                )
        return columns

    def _limits(self, connection: Any, columns: list[RemoteColumn]) -> dict[str, str] | None:
        """How Spark divides the rows by ranges of a column; None: it does not, or has no rows."""
        wanted = self.source.partition_by
        if wanted is None:
            return None
        index = next((i for i, e in enumerate(columns) if e.name.lower() == wanted.lower()), None)
        where = f"{source_text(self.source)}: partition_by"
        if index is None:
            names = ", ".join(each.name for each in columns)
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{where}: {wanted} is not a column of it",
                f"Its columns are: {names}.",
                name=wanted,
            )
        if self._reading(columns[index]).local not in _WHOLE:
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"{where}: {wanted} has the type {columns[index].type_name}",
                "Use a column of whole numbers.",
            )
        column = self.dialect.quoted(columns[index].name)
        statement = connection.createStatement()
        try:
            result_set = statement.executeQuery(
                f"SELECT CAST(MIN({column}) AS {self.dialect.text_type}), "
                f"CAST(MAX({column}) AS {self.dialect.text_type}) "
                f"FROM ({self.source.text}\n) q"
            )
            result_set.next()
            least, most = result_set.getString(1), result_set.getString(2)
        finally:
            statement.close()
        if least is None:
            return None
        return {
            "partitionColumn": f"c{index}",
            "lowerBound": least,
            "upperBound": str(min(int(most) + 1, _GREATEST)),
            "numPartitions": str(self.source.partitions),
        }

    def _reading(self, column: RemoteColumn) -> Reading:
        reading = self.dialect.reading(column)
        if reading is not None:
            return reading
        kind, name = column.type_name, self.dialect.quoted(column.name)
        wanted = self.dialect.text_type
        if kind.lower() in ("numeric", "decimal"):
            exact = f"{kind}({column.precision}, {column.scale})"
            kind = exact if column.precision else "numeric without a scale"
            wanted = "DECIMAL(38, 10)"
        elif kind.lower() == "bit":
            wanted = {"`": "UNSIGNED"}.get(self.dialect.mark, wanted)
        raise NotSupportedError(
            f"{source_text(self.source)}: column {column.name} has the type {kind}, which no type "
            "here holds exactly.",
            f"Cast it in the query, for example CAST({name} AS {wanted}).",
        )

    def _local(self, column: RemoteColumn, reading: Reading, value: str) -> str:
        local = reading.local.format(v=value)
        if reading.bad is None:
            return named(local, column.name)
        problem = f"{source_text(self.source)}: column {column.name} has {reading.told}"
        message = text_literal(problem)
        if reading.is_shown:
            message = f"concat({text_literal(f'{problem}: ')}, CAST({value} AS STRING))"
        failure = raised(
            ErrorCode.VALUE_NOT_STORABLE,
            message,
            "Leave such rows out, or give them another value, in the query.",
        )
        bad = reading.bad.format(v=value)
        checked = f"CASE WHEN {value} IS NULL THEN NULL WHEN {bad} THEN {failure} ELSE {local} END"
        return named(checked, column.name)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            raise self._failure(error) from None

    def _failure(self, error: Py4JJavaError) -> JobError:
        """The error for what the driver or the database said."""
        state, text = _sql_state(error)
        where = source_text(self.source)
        if state is None:
            return InternalError(
                ErrorCode.SPARK_FAILED, f"{where}: {shortened(text)}", "See the driver's log."
            )
        if state.startswith(_UNREACHABLE):
            return InternalError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"{where}: the database at {self.source.url} does not answer: {text}",
                "Look whether it runs, and whether the machine of the driver reaches it.",
            )
        if state.startswith(_LOGIN):
            return CatalogError(
                ErrorCode.SOURCE_UNREADABLE,
                f"{where}: the database at {self.source.url} refuses the login: {text}",
                f"Correct login and password of the connection {self.source.connection}.",
            )
        return CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{where}: the database refuses the query: {text}",
            "Correct the query, which is in the database's own SQL.",
        )


_PUSHED: Final = (
    "pushDownPredicate",
    "pushDownAggregate",
    "pushDownLimit",
    "pushDownOffset",
    "pushDownTableSample",
)
_WHOLE: Final = tuple(f"CAST({{v}} AS {each})" for each in ("TINYINT", "SMALLINT", "INT", "BIGINT"))
# Classes of SQLSTATEs: no connection; resources, the server's end.
_UNREACHABLE: Final = ("08", "53", "57P")
_LOGIN: Final = "28"


def _sql_state(error: Py4JJavaError) -> tuple[str | None, str]:
    """The SQLSTATE of a java.sql.SQLException among the causes, and its message's first line."""
    cause: Any = error.java_exception
    text = str(cause.getMessage() or cause.toString())
    for _ in range(_MOST_CAUSES):
        if cause is None:
            break
        with suppress(Py4JError, TypeError):
            state = cause.getSQLState()
            return str(state or ""), str(cause.getMessage()).strip().splitlines()[0]
        cause = cause.getCause()
    return None, text
