"""Iceberg catalogs as pages and sensors ask them; pyiceberg is imported when a table is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from airflow_provider_merge.metadata.iceberg.files import StorageFiles
from airflow_provider_merge.metadata.listed import listed_names
from airflow_provider_merge.storage.failures import unreadable
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, JobError
from spark_jobs.formats.iceberg.catalogs import Client, found_table, handed_out
from spark_jobs.formats.iceberg.options import CATALOG_NAME, REST, SQL, TYPE, URI, identifier_of

PACKAGE: Final = "pyiceberg>=0.12,<0.13"
_VERSION: Final = "0.12."
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
            table = found_table(catalog, identifier)
            if table is None:
                raise _missing(self.place, name)
            files = StorageFiles({**catalog.properties, **handed_out(table)})
            places = table.metadata_location, table.metadata.location
            return LoadedTable(table.metadata, files.of_table(*filter(None, places)))

    def namespaces(self) -> list[str]:
        """The names of the top namespaces, sorted; raises as ``load`` does."""
        with self._answering(None), self._opened() as catalog:
            return sorted(".".join(each) for each in catalog.list_namespaces())

    def tables(self, most: int) -> list[TableName]:
        """The names of the tables of all namespaces, at most so many; raises as ``load`` does."""
        table_names: list[TableName] = []
        with self._answering(None), self._opened() as catalog:
            waiting = sorted(catalog.list_namespaces())[::-1]
            while waiting and len(table_names) < most:
                namespace = waiting.pop()
                names = sorted(each[-1] for each in catalog.list_tables(namespace))
                table_names += listed_names(".".join(namespace), names)
                if len(namespace) < _DEPTH:
                    inner = catalog.list_namespaces(namespace)
                    waiting += [each for each in sorted(inner)[::-1] if len(each) > len(namespace)]
        return table_names[:most]

    @property
    def place(self) -> str:
        """What people know the catalog by; has no secret."""
        name = f"the catalog {self.options.get(CATALOG_NAME, '')}"
        uri = self.options.get(URI)
        # A database may hold several.
        return f"{name} in {uri}" if uri and self.options.get(TYPE) == SQL else uri or name

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        if self.options.get(TYPE, REST) != SQL:
            self._kept = self._kept or self._client()
            yield self._kept
            return
        with self._client() as catalog:
            yield catalog

    def _client(self) -> Any:
        # A try is repeated by who polls.
        return _CLIENT.opened({"rest.sigv4.max-retries": "0", **self.options})

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
        installed = version("pyiceberg")
    except PackageNotFoundError:
        installed = "none"
    if not installed.startswith(_VERSION):
        raise CatalogError(
            ErrorCode.LIBRARY_MISSING,
            f"Iceberg tables are read with {PACKAGE}, but there is {installed} beside Airflow.",
            "Install it: pip install 'airflow-provider-merge[iceberg]'.",
        )


class _BoundedRest:
    """A base before pyiceberg's ``RestCatalog``: answers have bounds of time and size."""

    def _config_headers(self, session: Any) -> None:
        from airflow_provider_merge.metadata.iceberg.bounded_http import BoundedAdapter

        for scheme in ("http://", "https://"):
            session.mount(scheme, BoundedAdapter())
        super()._config_headers(session)  # type: ignore[misc]

    def _create_session(self) -> Any:
        from airflow_provider_merge.metadata.iceberg.bounded_http import BoundedAdapter

        session = super()._create_session()  # type: ignore[misc]
        for prefix, adapter in list(session.adapters.items()):
            if not isinstance(adapter, BoundedAdapter):
                session.mount(prefix, BoundedAdapter(adapter))
        return session


def _glue_session() -> Any:
    from airflow_provider_merge.metadata.iceberg.bounded_http import bounded_session

    return bounded_session()


_CLIENT: Final = Client(
    StorageFiles, _BoundedRest, _glue_session, makes_tables=False, where="beside Airflow"
)


def _failure(error: Exception, place: str, name: TableName | None) -> Exception:
    """The error with a code for what a catalog raised."""
    from pyiceberg.exceptions import NoSuchNamespaceError

    if isinstance(error, NoSuchNamespaceError):
        return _missing(place, name)
    if failure := _CLIENT.failure(error, place, str(name)):
        return failure
    if isinstance(error, OSError):
        return error
    return unreadable(place, f"gave metadata of {name} that cannot be read: {type(error).__name__}")


def _missing(place: str, name: TableName | None) -> JobError:
    return CatalogError(
        ErrorCode.TABLE_NOT_FOUND,
        f"{place} knows no table {name}",
        "Correct the table's name, or the connection.",
    )
