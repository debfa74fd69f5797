"""Iceberg catalogs, opened with pyiceberg; it is imported when one is opened, no sooner.

By itself, pyiceberg takes names of classes from a server's answers and from tables' properties, and
lets a table say where the catalog's keys are sent: neither gets through. Of errors nothing but the
kind is repeated: their text may hold what was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError, NotSupportedError
from spark_jobs.formats.iceberg.glue import OwnGlue, glue_failure, no_boto3
from spark_jobs.formats.iceberg.metadata_json import version_3_json
from spark_jobs.formats.iceberg.options import (
    CATALOG_NAME,
    FILE_IO,
    GLUE,
    REST,
    SQL,
    SQL_PASSWORD,
    SQL_USER,
    URI,
    in_another_case,
    properties_of,
    require_catalog,
)
from spark_jobs.formats.iceberg.rest import OwnProperties

_CONNECT_SECONDS: Final = 10
# Whether a catalog in a database makes its tables if they are not there: pyiceberg's property.
_MAKES_TABLES: Final = "init_catalog_tables"
_CATALOG_TABLE: Final = "iceberg_tables"


@dataclass(frozen=True)
class Client:
    """How one side of the project sends requests to catalogs.

    ``files`` is a class of pyiceberg's ``FileIO`` for reading, made with properties, whose ``read``
    gives the content as it is; ``rest`` a base that stands before
    pyiceberg's ``RestCatalog`` and bounds its requests; ``glue_session`` makes a session of
    botocore. ``makes_tables``: whether a new catalog in a database is begun where the options ask
    for it. ``where`` the libraries are: ``beside Airflow``.
    """

    files: type
    rest: type
    glue_session: Callable[[], Any]
    makes_tables: bool
    where: str

    def opened(self, options: Mapping[str, str]) -> Any:
        """Pyiceberg's catalog of ``options``, which hold secrets.

        Raises:
            NotSupportedError: the catalog is not opened.
            CatalogError: LIBRARY_MISSING, WAREHOUSE_NOT_FOUND.
        """
        kind = require_catalog(options)
        files = f"{self.files.__module__}.{self.files.__qualname__}"
        properties = {**properties_of(options), FILE_IO: files}
        name = properties.pop(CATALOG_NAME, kind)
        user, password = (properties.pop(each, None) for each in (SQL_USER, SQL_PASSWORD))
        if kind == SQL:
            properties[URI] = _sql_uri(properties[URI], user, password)
            properties[_MAKES_TABLES] = str(_is_new(properties)).lower()
            if not _is_new(properties) and _has_no_file(properties[URI]):
                raise _no_catalog()
        return _CLASSES[kind](self)(name, **properties)

    def failure(self, error: Exception, catalog: str, table: str) -> JobError | None:
        """The error with a code for what a catalog raised; None: it is not one of a catalog.

        ``catalog`` is what people know it by, ``table`` what it was asked for.
        """
        from pydantic import ValidationError
        from pyiceberg import exceptions

        if failure := glue_failure(error, catalog):
            return failure
        denied = (exceptions.UnauthorizedError, exceptions.ForbiddenError, exceptions.OAuthError)
        if isinstance(error, exceptions.AuthorizationExpiredError):
            return _unavailable(catalog, "the credentials have expired")
        if isinstance(error, denied):
            return CatalogError(
                ErrorCode.WAREHOUSE_ACCESS_DENIED,
                f"{catalog} does not accept the credentials of the connection.",
                "Correct the login and password, or the token, of the catalog connection, or its "
                "rights.",
            )
        if _is_of_service(error):
            return _unavailable(catalog, type(error).__name__)
        if isinstance(error, ModuleNotFoundError):
            return CatalogError(
                ErrorCode.LIBRARY_MISSING,
                f"{catalog} needs the Python module {error.name!r}, which is not installed "
                f"{self.where}.",
                "Install what the catalog needs there; for one in a database, by its kind, "
                "'pyiceberg[sql-postgres]' or 'pyiceberg[sql-sqlite]'.",
            )
        invalid = error.__cause__ if isinstance(error, exceptions.ValidationError) else error
        return _invalid(table, invalid) if isinstance(invalid, ValidationError) else None


def found_table(catalog: Any, identifier: tuple[str, ...]) -> Any | None:
    """Pyiceberg's table of this name, or else the only one with this name in another case."""
    from pyiceberg import exceptions

    missing = (
        exceptions.NoSuchTableError,
        exceptions.NoSuchNamespaceError,
        exceptions.NoSuchIdentifierError,
        exceptions.NoSuchIcebergTableError,
    )
    try:
        return catalog.load_table(identifier)
    except missing:
        try:
            spelled = in_another_case(identifier, catalog.list_tables(identifier[:-1]))
            return catalog.load_table(spelled) if spelled else None
        except (*missing, exceptions.ForbiddenError):
            return None


def handed_out(table: Any) -> dict[str, str]:
    """What a catalog says of the storage of pyiceberg's ``table``, such as keys.

    What it says of this place stands before the table's configuration; nothing is taken from what
    the table says of itself.
    """
    own = table.metadata.properties
    given = {name: value for name, value in table.io.properties.items() if own.get(name) != value}
    return {**table.config, **given}


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
        url = url.update_query_dict({"connect_timeout": str(_CONNECT_SECONDS)})
    return str(url.render_as_string(hide_password=False))


def _is_new(properties: Mapping[str, Any]) -> bool:
    """Whether the options ask for a new catalog where there is none."""
    return str(properties.get(_MAKES_TABLES, "")).lower() == "true"


def _has_no_file(uri: str) -> bool:
    """Whether a database of SQLite is not there; it would be made by looking for it."""
    from sqlalchemy.engine import make_url

    url = make_url(uri)
    path = url.database or ""
    is_file = url.get_backend_name() == "sqlite" and path not in ("", ":memory:")
    return is_file and not path.startswith("file:") and not Path(path).exists()


def _no_catalog() -> CatalogError:
    return CatalogError(
        ErrorCode.WAREHOUSE_NOT_FOUND,
        f"The database of the catalog has no table {_CATALOG_TABLE}: it holds no Iceberg catalog.",
        f"Correct uri of the catalog connection; for a new catalog, write {_MAKES_TABLES} = true "
        "into its extra: the first task that creates a table makes it.",
    )


@cache
def _own_files(files: type) -> type:
    class OwnFiles:
        """A base before pyiceberg's catalogs that read and write metadata files themselves."""

        properties: dict[str, str]

        def _load_file_io(self, properties: Any = None, location: str | None = None) -> Any:
            del properties, location
            return files(self.properties)

        def _write_metadata(self, metadata: Any, io: Any, metadata_path: str) -> None:
            if metadata.format_version < 3:
                super()._write_metadata(metadata, io, metadata_path)  # type: ignore[misc]
                return
            with io.new_output(metadata_path).create() as stream:
                stream.write(version_3_json(metadata, files(self.properties).read))

    return OwnFiles


@cache
def _sql_class(client: Client) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import NoSuchNamespaceError
    from sqlalchemy import inspect

    class OwnSqlCatalog(_own_files(client.files), SqlCatalog):  # type: ignore[misc]
        """One that is to be begun, but not by this client, is empty."""

        def _init_catalog(self) -> None:
            is_new = _is_new(self.properties)
            self.properties[_MAKES_TABLES] = str(is_new and client.makes_tables).lower()
            super()._init_catalog()
            self._is_there = inspect(self.engine).has_table(_CATALOG_TABLE)
            if not is_new and not self._is_there:
                raise _no_catalog()

        def list_namespaces(self, namespace: Any = ()) -> Any:
            return super().list_namespaces(namespace) if self._is_there else []

        def list_tables(self, namespace: Any) -> Any:
            self._require_namespace(namespace)
            return super().list_tables(namespace)

        def load_table(self, identifier: Any) -> Any:
            self._require_namespace(identifier)
            return super().load_table(identifier)

        def _require_namespace(self, name: Any) -> None:
            if not self._is_there:
                raise NoSuchNamespaceError(str(name))

    return OwnSqlCatalog


@cache
def _glue_class(client: Client) -> Any:
    try:
        from pyiceberg.catalog.glue import GlueCatalog
    except ModuleNotFoundError as error:
        raise no_boto3(client.where) from error

    class OwnGlueCatalog(_own_files(client.files), OwnGlue, GlueCatalog):  # type: ignore[misc]
        def _session(self) -> Any:
            return client.glue_session()

    return OwnGlueCatalog


@cache
def _rest_class(client: Client) -> Any:
    from pyiceberg.catalog.rest import RestCatalog

    class OwnRestCatalog(client.rest, OwnProperties, RestCatalog):  # type: ignore[misc,name-defined]
        def _load_file_io(self, properties: Any = None, location: str | None = None) -> Any:
            del location
            return client.files({**self.properties, **(properties or {})})

    return OwnRestCatalog


_CLASSES: Final = {REST: _rest_class, SQL: _sql_class, GLUE: _glue_class}


def _is_of_service(error: Exception) -> bool:
    """Whether a server or a database did not answer as it should."""
    from pyiceberg.exceptions import RESTError
    from requests import RequestException

    return isinstance(error, RESTError | RequestException) or _is_of_database(error)


def _is_of_database(error: Exception) -> bool:
    try:
        from sqlalchemy.exc import SQLAlchemyError
    except ModuleNotFoundError:  # only catalogs in databases need it
        return False
    return isinstance(error, SQLAlchemyError)


def _invalid(table: str, error: Any) -> JobError:
    first = error.errors(include_url=False)[0]
    way = ".".join(map(str, first["loc"]))
    text = f"The metadata of {table} cannot be read: {way}: {first['msg'][:400]}"
    remedy = "Check who wrote it; types of a later version of the format are not known here."
    is_type = way.endswith(".type") and ".fields." in way
    if is_type or _has_several_sources(first["input"]):
        return NotSupportedError(text, remedy)
    return CatalogError(ErrorCode.METADATA_UNREADABLE, text, remedy)


def _has_several_sources(field: Any) -> bool:
    """Whether it is a partition or sort field of several columns, which pyiceberg does not have."""
    return isinstance(field, Mapping) and len(field.get("source-ids") or ()) > 1


def _unavailable(catalog: str, problem: str) -> JobError:
    return InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"{catalog} did not answer as it should ({problem}).",
        "Check uri of the catalog connection, and look at the catalog's own log.",
    )
