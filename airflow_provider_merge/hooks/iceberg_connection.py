"""A connection to an Iceberg catalog as the options of a catalog and of its storage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from airflow.providers.common.compat.sdk import Connection

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.connection_forms import SPARK_CATALOG_NAME
from airflow_provider_merge.hooks.masked_secrets import masked
from airflow_provider_merge.storage.remote import storage_arguments
from spark_jobs.contract.locations import WAREHOUSE_SCHEMES, scheme_of
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.secret_names import holds_secret
from spark_jobs.errors import RequestError
from spark_jobs.formats.iceberg.options import (
    AWS_KEY_ID,
    AWS_SECRET,
    CATALOG_NAME,
    CLIENT_ID,
    CLIENT_SECRET,
    FILE_IO,
    GLUE,
    NESTED,
    PUBLIC,
    REST,
    SNAPSHOTS,
    SQL,
    SQL_PASSWORD,
    SQL_USER,
    TYPE,
    URI,
    WAREHOUSE,
    flat,
    require_catalog,
    storage_options,
)

# What a job calls the connector, and the connection type of Airflow's own provider.
CONNECTOR: Final = "iceberg"
# The type whose form has a field for each option that most catalogs need.
OWN_TYPE: Final = "lakehouse_iceberg"
CONNECTION_TYPES: Final = (OWN_TYPE, CONNECTOR)
WORKSPACE: Final = "workspace"
PAGES: Final = ("ui_url", "quarantine-url")
# Who opens files is not the connection's to say; these two are what pyiceberg itself would take.
_FILE_IOS: Final = ("pyiceberg.io.fsspec.FsspecFileIO", "pyiceberg.io.pyarrow.PyArrowFileIO")
# What login and password are, by the type of the catalog.
_LOGINS: Final = {
    REST: (CLIENT_ID, CLIENT_SECRET),
    SQL: (SQL_USER, SQL_PASSWORD),
    GLUE: (AWS_KEY_ID, AWS_SECRET),
}
# Problem and remedy if there is only one of them.
_HALVES: Final = {
    REST: (
        "is empty, but a client has an id and a secret",
        "Write client id and secret of OAuth 2; a token goes into extra, token.",
    ),
    GLUE: (
        "is empty, but a key of AWS has an id and a secret",
        "Write both, or neither where this machine and the driver have a role.",
    ),
}


@dataclass(frozen=True)
class IcebergConnection:
    """The fields of the connection ``conn_id``; every method raises REQUEST_INVALID, naming one."""

    conn_id: str
    connection: Connection = field(repr=False)

    def catalog_spec(self) -> CatalogSpec:
        """Warehouse, workspace and catalog options, without any secret.

        Raises:
            NotSupportedError: a catalog that is not opened.
            RequestError: REQUEST_INVALID, naming the connection and the field.
        """
        self.require_no_password()
        options, workspace = self.options(), self.workspace()
        warehouse, place = self._location(), self.place()
        if not place:
            problem = "is empty, but jobs need a place for results and temporary files"
            raise self._invalid(WORKSPACE, problem, f"Write a path or URI into extra, {WORKSPACE}.")
        if (scheme := scheme_of(place)) not in WAREHOUSE_SCHEMES:
            remedy = f"Write a path, file://, s3:// or hdfs:// into extra, {WORKSPACE}."
            raise self._invalid(WORKSPACE, f"jobs cannot leave results on {scheme}://", remedy)
        public = {name: each for name, each in options.items() if name in PUBLIC}
        try:
            return CatalogSpec(CONNECTOR, warehouse, public, workspace)
        except RequestError as error:
            raise self._named(error) from None

    def place(self) -> str:
        """Where jobs leave results and temporary files; empty: the connection does not tell."""
        workspace = self.workspace()
        return self._location() if workspace is None else workspace

    def require_no_password(self) -> None:
        """Check that no address holds a password: addresses are shown.

        Raises:
            NotSupportedError: a catalog that is not opened.
            RequestError: REQUEST_INVALID, naming the connection and the field.
        """
        for name, value in {**self.options(), WORKSPACE: self.workspace() or ""}.items():
            if holds_secret(value):
                remedy = "Put user and password into the connection's login and password."
                raise self._invalid(name, "holds a password", remedy)

    def credentials(self) -> dict[str, str]:
        """The catalog options that are secret, or may be; masked in logs."""
        options = self.options()
        private = {name: each for name, each in options.items() if name not in PUBLIC}
        return masked({**private, **self._login(options[TYPE])})

    def all_options(self) -> dict[str, str]:
        """All catalog options; holds secrets.

        Raises:
            NotSupportedError: a catalog that is not opened.
        """
        return {**self.options(), **self.credentials()}

    def workspace_options(self) -> dict[str, Any]:
        """Arguments of the fsspec file system of the workspace; holds secrets."""
        spec, options = self.catalog_spec(), self.all_options()
        return storage_arguments(spec.workspace_location, storage_options(options))

    def options(self) -> dict[str, str]:
        """All catalog options that host and extra tell, secret or not.

        Raises:
            NotSupportedError: a catalog that is not opened.
        """
        extra = dict(self.connection.extra_dejson)
        for name in (WORKSPACE, SPARK_CATALOG_NAME, *PAGES):
            extra.pop(name, None)
        if extra.pop(FILE_IO, _FILE_IOS[0]) not in _FILE_IOS:
            raise self._invalid(FILE_IO, "names a class of your own, which opens no files here")
        options: dict[str, str] = {}
        for name, field_value in extra.items():
            # A form sends an empty text for a field that is left empty.
            if field_value not in (None, ""):
                options |= self._texts(name, field_value)
        if host := (self.connection.host or "").rstrip("/"):
            options[URI] = host
        options[TYPE] = options.get(TYPE, REST).lower()
        options.setdefault(CATALOG_NAME, self.conn_id)
        if options[TYPE] == REST:
            options.setdefault(SNAPSHOTS, "all")
        try:
            require_catalog(options)
        except RequestError as error:
            raise self._named(error) from None
        return options

    def workspace(self) -> str | None:
        """Where jobs leave results and temporary files; None: in the warehouse."""
        text = str(self.connection.extra_dejson.get(WORKSPACE) or "").strip()
        return text or None

    def _location(self) -> str:
        """The warehouse, if it is one and not a server's name of one; else empty."""
        warehouse = self.options().get(WAREHOUSE, "")
        return warehouse if warehouse.startswith("/") or "://" in warehouse else ""

    def _login(self, kind: str) -> dict[str, str]:
        """The options that login and password stand for."""
        login, password = self.connection.login or "", self.connection.password or ""
        if not login and not password:
            return {}
        if kind != SQL and not (login and password):
            missing = "password" if login else "login"
            raise self._invalid(missing, *_HALVES[kind])
        names = _LOGINS[kind]
        return {name: each for name, each in zip(names, (login, password), strict=True) if each}

    def _texts(self, name: str, value: Any) -> dict[str, str]:
        if name in NESTED:
            if not isinstance(value, dict):
                raise self._invalid(name, "is not a JSON object")
            try:
                return flat(name, value)
            except RequestError as error:
                raise self._named(error) from None
        if isinstance(value, dict | list):
            remedy = f"Only {' and '.join(NESTED)} are objects; write the other properties flat."
            raise self._invalid(name, "is not text", remedy)
        return {name: str(value).lower() if isinstance(value, bool) else str(value)}

    def _named(self, error: RequestError) -> RequestError:
        return self._invalid(": ".join(error.places), error.problem, error.remedy)

    def _invalid(self, field: str, problem: str, remedy: str = "") -> RequestError:
        return invalid(f"connection {self.conn_id!r}, {field}", problem, remedy)
