"""Iceberg catalogs, opened with pyiceberg; it is imported when a table is looked for, no sooner.

By itself, pyiceberg takes names of classes from a server's answers and from tables' properties, and
lets a table say where the catalog's keys are sent: neither gets through. Of errors nothing but the
kind is repeated: their text may hold what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from airflow_provider_merge.metadata.iceberg.files import StorageFiles
from airflow_provider_merge.metadata.listed import listed_names
from airflow_provider_merge.storage.failures import unreadable
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError
from spark_jobs.formats.iceberg.glue import OwnGlue, glue_failure, no_boto3
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

PACKAGE: Final = "pyiceberg>=0.12,<0.13"
_VERSION: Final = "0.12."
_FILES: Final = f"{StorageFiles.__module__}.{StorageFiles.__qualname__}"
_SQL_SECONDS: Final = 30
# Of namespaces in namespaces, whose tables are listed.
_DEPTH: Final = 8


@dataclass(frozen=True)
class LoadedTable:
    """A table as it is now: pyiceberg's ``TableMetadata``, and who reads its files."""

    metadata: Any
    files: StorageFiles


@dataclass
class IcebergCatalog:
    """The catalog of ``options``, which hold secrets."""

    options: Mapping[str, str] = field(repr=False)
    # Opening a server's catalog asks it twice and more; a database is not kept open.
    _kept: Any = field(default=None, repr=False)

    def load(self, name: TableName) -> LoadedTable:
        """A table, in one request of the catalog if it has exactly this name.

        Raises:
            CatalogError: TABLE_NOT_FOUND, METADATA_UNREADABLE, WAREHOUSE_ACCESS_DENIED,
                LIBRARY_MISSING.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: the catalog is not opened.
            OSError: the table's storage refused.
        """
        if not all(name.database.split(".")):
            raise _missing(self.place, name)
        identifier = identifier_of(self.options, name)
        with self._answering(name), self._opened() as catalog:
            found = _found(catalog, identifier)
            own, of_table = dict(catalog.properties), found.metadata.properties
            given = {k: v for k, v in found.io.properties.items() if of_table.get(k) != v}
            files = StorageFiles({**own, **found.config, **given})
            places = found.metadata_location, found.metadata.location
            return LoadedTable(found.metadata, files.of_table(*filter(None, places)))

    def namespaces(self) -> list[str]:
        """The names of the top namespaces, sorted; raises as ``load`` does."""
        with self._answering(None), self._opened() as catalog:
            return sorted(".".join(each) for each in catalog.list_namespaces())

    def tables(self, most: int) -> list[TableName]:
        """The names of the tables of all namespaces, at most so many; raises as ``load`` does."""
        found: list[TableName] = []
        with self._answering(None), self._opened() as catalog:
            waiting = sorted(catalog.list_namespaces())[::-1]
            while waiting and len(found) < most:
                namespace = waiting.pop()
                names = sorted(each[-1] for each in catalog.list_tables(namespace))
                found += listed_names(".".join(namespace), names)
                if len(namespace) < _DEPTH:
                    inner = catalog.list_namespaces(namespace)
                    waiting += [each for each in sorted(inner)[::-1] if len(each) > len(namespace)]
        return found[:most]

    @property
    def place(self) -> str:
        """What people know the catalog by; has no secret."""
        return self.options.get(URI) or f"the catalog {self.options.get(CATALOG_NAME, '')}"

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        if self.options.get(TYPE, REST) != SQL:
            self._kept = self._kept or _opened(self.options)
            yield self._kept
            return
        with _opened(self.options) as catalog:
            yield catalog

    @contextmanager
    def _answering(self, name: TableName | None) -> Iterator[None]:
        """Within it, failures of the catalog are errors with a code."""
        require_library()
        try:
            yield
        except JobError:
            raise
        except Exception as error:  # noqa: BLE001 - libraries of catalogs raise all kinds
            raise _failure(error, self.place, name) from None


def require_library() -> None:
    """Check that pyiceberg is installed beside Airflow, in a version that was tried.

    Raises:
        CatalogError: LIBRARY_MISSING.
    """
    try:
        found = version("pyiceberg")
    except PackageNotFoundError:
        found = "none"
    if not found.startswith(_VERSION):
        raise CatalogError(
            ErrorCode.LIBRARY_MISSING,
            f"Iceberg tables are read with {PACKAGE}, but there is {found} beside Airflow.",
            "Install it: pip install 'airflow-provider-merge[iceberg]'.",
        )


def _found(catalog: Any, identifier: tuple[str, ...]) -> Any:
    """The table of this name, or else the only one with this name in another case."""
    from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

    try:
        return catalog.load_table(identifier)
    except NoSuchTableError:
        try:
            spelled = in_another_case(identifier, catalog.list_tables(identifier[:-1]))
        except ForbiddenError:
            spelled = None
        if spelled is None:
            raise
    return catalog.load_table(spelled)


def _opened(options: Mapping[str, str]) -> Any:
    kind = require_catalog(options)
    properties = {**properties_of(options), FILE_IO: _FILES}
    name = properties.pop(CATALOG_NAME, kind)
    user, password = (properties.pop(each, None) for each in (SQL_USER, SQL_PASSWORD))
    if kind == REST:
        # A try is repeated by who polls.
        properties.setdefault("rest.sigv4.max-retries", "0")
    elif kind == SQL:
        properties[URI] = _sql_uri(properties[URI], user, password)
        properties["init_catalog_tables"] = "false"
    return _class_of(kind)(name, **properties)


def _sql_uri(uri: str, user: str | None, password: str | None) -> str:
    """The address of a database with its user; it holds a secret."""
    from sqlalchemy.engine import make_url

    url = make_url(uri)
    if user:
        url = url.set(username=user)
    if password:
        url = url.set(password=password)
    if url.get_backend_name() == "postgresql":
        url = url.update_query_dict({"connect_timeout": str(_SQL_SECONDS)})
    return url.render_as_string(hide_password=False)


def _class_of(kind: str) -> Any:
    return {REST: _rest_catalog, SQL: _sql_catalog, GLUE: _glue_catalog}[kind]()


@cache
def _rest_catalog() -> Any:
    from pyiceberg.catalog.rest import RestCatalog

    from airflow_provider_merge.metadata.iceberg.bounded_http import BoundedAdapter

    class BoundedRestCatalog(OwnProperties, RestCatalog):
        def _config_headers(self, session: Any) -> None:
            for scheme in ("http://", "https://"):
                session.mount(scheme, BoundedAdapter())
            super()._config_headers(session)

        def _create_session(self) -> Any:
            session = super()._create_session()
            for prefix, adapter in list(session.adapters.items()):
                if not isinstance(adapter, BoundedAdapter):
                    session.mount(prefix, BoundedAdapter(adapter))
            return session

        def _load_file_io(self, properties: Any = None, location: str | None = None) -> Any:
            return StorageFiles({**self.properties, **(properties or {})})

    return BoundedRestCatalog


class _OwnFiles:
    """A base before pyiceberg's catalogs that read metadata files themselves."""

    properties: dict[str, str]

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> Any:
        del properties, location
        return StorageFiles(self.properties)


@cache
def _sql_catalog() -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    class OwnSqlCatalog(_OwnFiles, SqlCatalog):
        pass

    return OwnSqlCatalog


@cache
def _glue_catalog() -> Any:
    try:
        from pyiceberg.catalog.glue import GlueCatalog
    except ModuleNotFoundError as error:
        raise no_boto3("beside Airflow") from error

    from airflow_provider_merge.metadata.iceberg.bounded_amazon import bounded_session

    class BoundedGlueCatalog(_OwnFiles, OwnGlue, GlueCatalog):
        def _session(self) -> Any:
            return bounded_session()

    return BoundedGlueCatalog


def _failure(error: Exception, place: str, name: TableName | None) -> Exception:
    """The error with a code for what a catalog raised."""
    from pydantic import ValidationError
    from pyiceberg import exceptions
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    if failure := glue_failure(error, place):
        return failure
    missing = (
        exceptions.NoSuchTableError,
        exceptions.NoSuchNamespaceError,
        exceptions.NoSuchIdentifierError,
        exceptions.NoSuchIcebergTableError,
    )
    denied = (exceptions.UnauthorizedError, exceptions.ForbiddenError, exceptions.OAuthError)
    passing = (exceptions.RESTError, RequestException, SQLAlchemyError)
    if isinstance(error, missing):
        return _missing(place, name)
    if isinstance(error, exceptions.AuthorizationExpiredError):
        return _unavailable(place, "the credentials have expired")
    if isinstance(error, denied):
        return CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            f"{place} does not accept the credentials of the connection, or they have expired.",
            "Correct login and password of the catalog connection, or its rights.",
        )
    if isinstance(error, ValidationError):
        return unreadable(place, f"gave metadata of {name} that no table has")
    if isinstance(error, passing):
        return _unavailable(place, type(error).__name__)
    if isinstance(error, OSError):
        return error
    return unreadable(place, f"gave metadata of {name} that cannot be read: {type(error).__name__}")


def _missing(place: str, name: TableName | None) -> JobError:
    return CatalogError(
        ErrorCode.TABLE_NOT_FOUND,
        f"{place} knows no table {name}",
        "Correct the table's name, or the connection.",
    )


def _unavailable(place: str, problem: str) -> JobError:
    return InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"{place} did not answer as it should ({problem}).",
        "Check uri of the catalog connection, and look at the catalog's own log.",
    )
