"""Catalogs, opened with pyiceberg such that every request has a time-out. Driver only.

pyiceberg takes classes by name from a server's answers and from the properties of tables, and lets
those of a table say where the catalog's keys are sent: neither is let through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, Final, Literal

from spark_jobs.connectors.iceberg.library.files import MetadataFiles, table_storage
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError, NotSupportedError
from spark_jobs.formats.iceberg.glue import OwnGlue, glue_failure, is_refusal, no_boto3
from spark_jobs.formats.iceberg.options import (
    CATALOG_NAME,
    FILE_IO,
    GLUE,
    REST,
    SQL,
    SQL_PASSWORD,
    SQL_USER,
    TYPE,
    URI,
    identifier_of,
    in_another_case,
    properties_of,
    require_catalog,
)
from spark_jobs.formats.iceberg.rest import OwnProperties
from spark_jobs.storage.amazon import bounded_session
from spark_jobs.storage.file_errors import file_error
from spark_jobs.storage.table_storage import TableStorage

_FILES: Final = f"{MetadataFiles.__module__}.{MetadataFiles.__qualname__}"
# To connect, and to wait for an answer.
_SECONDS: Final = (10.0, 60.0)


# To a request to commit: done; the table has changed; refused for another reason; anything else.
CommitAnswer = Literal["yes", "late", "no", "unknown"]


@dataclass(frozen=True)
class LoadedTable:
    """A table as it is now: pyiceberg's ``Table``, and where its files are."""

    table: Any
    storage: TableStorage


@dataclass(frozen=True)
class IcebergCatalog:
    """The catalog of ``options``, which hold secrets; opened when it is first asked."""

    options: Mapping[str, str] = field(repr=False)

    def load(self, name: TableName) -> LoadedTable | None:
        """A table; None if there is none of this name.

        If no table has exactly this name, it is the only one with this name in another case.

        Raises:
            CatalogError: METADATA_UNREADABLE, WAREHOUSE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: the catalog or the table's storage is not supported.
        """
        if not all(name.database.split(".")):
            return None
        identifier = identifier_of(self.options, name)
        with self.answering(str(name)):
            table = self._found(identifier)
            if table is None:
                table = self._in_another_case(identifier)
            if table is None:
                return None
            # Keys that the server hands out, those for this place before those of the table's
            # configuration, but nothing that a table says of itself.
            own = table.metadata.properties
            given = {k: v for k, v in table.io.properties.items() if own.get(k) != v}
            options = {**self.options, **table.config, **given}
            _refuse_signing(name, options)
            return LoadedTable(table, table_storage(table.metadata.location, options))

    def _found(self, identifier: tuple[str, ...]) -> Any | None:
        from pyiceberg import exceptions

        try:
            return self.opened.load_table(identifier)
        except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
            return None

    def _in_another_case(self, identifier: tuple[str, ...]) -> Any | None:
        from pyiceberg import exceptions

        try:
            known = self.opened.list_tables(identifier[:-1])
        except (exceptions.NoSuchNamespaceError, exceptions.ForbiddenError):
            return None
        spelled = in_another_case(identifier, known)
        return self._found(spelled) if spelled else None

    def create(
        self,
        name: TableName,
        schema: Mapping[str, Any],
        partition: Sequence[Mapping[str, Any]],
        properties: Mapping[str, str],
    ) -> bool:
        """Create a table; False if there is one of this name.

        ``schema`` and the fields of ``partition`` are in Iceberg's JSON form. Raises as ``load``
        does.
        """
        from pyiceberg.exceptions import TableAlreadyExistsError
        from pyiceberg.partitioning import PartitionSpec
        from pyiceberg.schema import Schema

        with self.answering(str(name)):
            identifier = identifier_of(self.options, name)
            self.opened.create_namespace_if_not_exists(identifier[:-1])
            try:
                self.opened.create_table(
                    identifier,
                    Schema.model_validate(schema),
                    partition_spec=PartitionSpec.model_validate({"fields": partition}),
                    properties={"format-version": "2", **properties},
                )
            except TableAlreadyExistsError:
                return False
            return True

    def committed(
        self, table: Any, required: tuple[Any, ...], changes: tuple[Any, ...]
    ) -> CommitAnswer:
        """Ask once for a commit to pyiceberg's ``table``."""
        from pyiceberg import exceptions

        refusals = (
            exceptions.BadRequestError,
            exceptions.UnauthorizedError,
            exceptions.ForbiddenError,
            exceptions.AuthorizationExpiredError,
        )
        try:
            self.opened.commit_table(table, required, changes)
        except exceptions.CommitFailedException:
            return "late"
        except refusals:
            return "no"
        except Exception as error:  # noqa: BLE001 - whatever it is: the commit may have been made
            # So these catalogs refuse a sequence number that another branch has taken.
            is_number = self.options.get(TYPE) in (SQL, GLUE) and type(error) is ValueError
            return "no" if is_number or is_refusal(error) else "unknown"
        return "yes"

    @contextmanager
    def answering(self, place: str) -> Iterator[None]:
        """Within it, failures of the catalog while it serves ``place`` are errors with a code."""
        try:
            yield
        except JobError:
            raise
        except Exception as error:
            raise _failure(place, error) from error

    @cached_property
    def opened(self) -> Any:
        """Pyiceberg's catalog."""
        kind = require_catalog(self.options)
        properties = properties_of(self.options)
        name = properties.pop(CATALOG_NAME, kind)
        user, password = (properties.pop(each, None) for each in (SQL_USER, SQL_PASSWORD))
        if kind == SQL:
            properties[URI] = _sql_uri(properties[URI], user, password)
            properties.setdefault("init_catalog_tables", "false")
        properties[FILE_IO] = _FILES
        return _CLASSES[kind]()(name, **properties)


def _refuse_signing(name: TableName, options: Mapping[str, str]) -> None:
    signs = options.get("s3.remote-signing-enabled", "").lower() == "true" or "s3.signer" in options
    if signs:
        raise NotSupportedError(
            f"The catalog's server wants to sign each request to the storage of {name}, which is "
            "not supported.",
            "Let the server hand out keys, or give keys to the connection.",
        )


def _sql_uri(uri: str, user: str | None, password: str | None) -> str:
    """The address of a database with its user; it holds a secret."""
    from sqlalchemy.engine import make_url

    url = make_url(uri)
    if url.password:
        raise NotSupportedError(
            "The uri of the catalog connection holds a password.",
            "Set login and password of the connection instead.",
        )
    url = url.set(username=user or url.username, password=password)
    if url.get_backend_name() == "postgresql":
        url = url.update_query_dict({"connect_timeout": str(int(_SECONDS[0]))})
    return str(url.render_as_string(hide_password=False))


class _OwnFiles:
    """A base before pyiceberg's catalogs that write metadata files themselves."""

    properties: dict[str, str]

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> Any:
        del properties, location
        return MetadataFiles(self.properties)


@cache
def _sql_class() -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    class PlainSqlCatalog(_OwnFiles, SqlCatalog):
        pass

    return PlainSqlCatalog


@cache
def _glue_class() -> Any:
    try:
        from pyiceberg.catalog.glue import GlueCatalog
    except ModuleNotFoundError as error:
        raise no_boto3("in the driver's environment") from error

    class PlainGlueCatalog(_OwnFiles, OwnGlue, GlueCatalog):
        def _session(self) -> Any:
            return bounded_session(("glue.GetTable", "glue.GetTables", "glue.GetDatabase"))

    return PlainGlueCatalog


@cache
def _rest_class() -> Any:
    from pyiceberg.catalog.rest import RestCatalog

    class TimedRestCatalog(OwnProperties, RestCatalog):
        def _config_headers(self, session: Any) -> None:
            # The first thing that happens to a session.
            session.request = partial(_answer_of, session.request)
            super()._config_headers(session)

        def _load_file_io(self, properties: Any = None, location: str | None = None) -> Any:
            return MetadataFiles({**self.properties, **(properties or {})})

    return TimedRestCatalog


_CLASSES: Final = {REST: _rest_class, SQL: _sql_class, GLUE: _glue_class}


def _answer_of(ask: Callable[..., Any], *asked: Any, **options: Any) -> Any:
    """The answer to a request; a redirect, which would take secrets elsewhere, is an error."""
    from requests import TooManyRedirects

    answer = ask(*asked, **{**options, "timeout": _SECONDS, "allow_redirects": False})
    if answer.is_redirect:
        raise TooManyRedirects
    return answer


def _failure(place: str, error: Exception) -> JobError:
    """The job's error; of a server's answer it repeats only the kind: the text may hold secrets."""
    from pydantic import ValidationError
    from pyiceberg import exceptions
    from requests import RequestException

    if failure := glue_failure(error, "The catalog"):
        return failure
    kind = type(error).__name__
    denied = (exceptions.UnauthorizedError, exceptions.ForbiddenError, exceptions.OAuthError)
    if isinstance(error, exceptions.AuthorizationExpiredError):
        return _unavailable("the credentials have expired")
    if isinstance(error, denied):
        return CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            "The catalog does not accept the credentials of the connection.",
            "Correct login and password of the catalog connection, or its rights.",
        )
    if isinstance(error, exceptions.RESTError | RequestException) or _is_of_database(error):
        return _unavailable(kind)
    if isinstance(error, ModuleNotFoundError):
        return CatalogError(
            ErrorCode.LIBRARY_MISSING,
            f"The catalog needs the Python module {error.name!r}, which the driver's environment "
            "does not have.",
            "Install what the catalog needs there, such as 'pyiceberg[sql-postgres]'.",
        )
    invalid = error.__cause__ if isinstance(error, exceptions.ValidationError) else error
    if isinstance(invalid, ValidationError):
        return _invalid(place, invalid)
    return file_error(place, error)


def _is_of_database(error: Exception) -> bool:
    try:
        from sqlalchemy.exc import SQLAlchemyError
    except ModuleNotFoundError:  # only catalogs in databases need it
        return False
    return isinstance(error, SQLAlchemyError)


def _invalid(place: str, error: Any) -> JobError:
    first = error.errors(include_url=False, include_input=False)[0]
    way = ".".join(map(str, first["loc"]))
    text = f"The metadata of {place} cannot be read: {way}: {first['msg'][:400]}"
    remedy = "Check who wrote it; types of a later version of the format are not known here."
    if way.endswith(".type") and ".fields." in way:
        return NotSupportedError(text, remedy)
    return CatalogError(ErrorCode.METADATA_UNREADABLE, text, remedy)


def _unavailable(problem: str) -> JobError:
    return InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"The catalog did not answer as it should ({problem}).",
        "Check uri of the catalog connection, and look at the catalog's own log.",
    )
