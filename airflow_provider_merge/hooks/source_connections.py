"""What sources name and only the worker finds: connections, catalogs behind them, code.

Nothing connects to a database here, and no function is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Final
from urllib.parse import quote

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook, Connection

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook
from airflow_provider_merge.hooks.masked_secrets import masked
from spark_jobs.contract.catalogs import PASSWORD, USER, scoped
from spark_jobs.contract.outside_sources import JdbcSource, PythonSource, SparkSource
from spark_jobs.contract.request import JobRequest, Source, TableSource
from spark_jobs.contract.secret_names import holds_secret
from spark_jobs.contract.source_names import called
from spark_jobs.errors import NotSupportedError, RequestError

_TYPES: Final = {"postgres": ("postgresql", 5432), "mysql": ("mysql", 3306)}
_ADDRESSES: Final = ("jdbc:postgresql:", "jdbc:mysql:", "jdbc:mariadb:")
# Of a connection's extra, what the driver has, too, by its name there.
_PROPERTIES: Final = {"postgres": {"sslmode": "sslmode", "sslrootcert": "sslrootcert"}, "mysql": {}}
_REMEDY = "Put the module beside the DAG file, where the worker imports it; it is one .py file."


def of_connection(request: JobRequest, hook: CatalogHook) -> JobRequest:
    """``request``, whose tables are in the catalog of ``hook`` or have their catalog with them.

    Databases have their address, functions their code.

    Raises:
        RequestError: REQUEST_INVALID, naming the connection's field, or the source whose connection
            or module is missing or of another kind.
        NotSupportedError: the catalog or the database of a source is not opened.
    """
    sources = tuple(_placed(each, request) for each in request.sources)
    own = [e.table for e in sources if isinstance(e, TableSource) and e.connection is None]
    for table in own if request.target is None else [request.target, *own]:
        hook.require_catalog(table)
    return replace(request, sources=sources)


def source_hook(source: TableSource) -> CatalogHook | None:
    """The hook of the connection that a source names; None: it names none.

    Raises:
        RequestError: REQUEST_INVALID, naming the source: there is none, or of another type.
    """
    if source.connection is None:
        return None
    try:
        return catalog_hook(source.connection)
    except RequestError as error:
        raise invalid(_field(source, "conn_id"), error.problem, error.remedy) from None


def source_credentials(request: JobRequest) -> Mapping[str, str]:
    """The secrets of the connections that sources name."""
    credentials: dict[str, str] = {}
    for source in request.sources:
        if isinstance(source, TableSource) and source.connection is not None:
            hook = source_hook(source)
            credentials |= scoped(source.connection, hook.credentials() if hook else {})
        elif isinstance(source, JdbcSource):
            given = login(_field(source, "conn_id"), source.connection)
            credentials |= scoped(source.connection, given)
        elif isinstance(source, SparkSource):
            for option, conn_id in source.secret_options.items():
                given = login(_field(source, f"secret_options.{option}"), conn_id)
                secret = {name: told for name, told in given.items() if name == PASSWORD}
                credentials |= scoped(conn_id, secret)
    return credentials


def _placed(source: Source, request: JobRequest) -> Source:
    if isinstance(source, TableSource):
        return _placed_table(source, request)
    if isinstance(source, JdbcSource):
        url, properties = _database_address(_field(source, "conn_id"), source.connection)
        return replace(source, url=url, properties=properties)
    if isinstance(source, PythonSource):
        code = function_code(_field(source, "function"), source.function)
        return replace(source, code=code)
    if isinstance(source, SparkSource):
        for option, conn_id in source.secret_options.items():
            field = _field(source, f"secret_options.{option}")
            if PASSWORD not in login(field, conn_id):
                problem = f"connection {conn_id!r} has no password"
                raise invalid(field, problem, "Set the password of the connection.")
    return source


def _placed_table(source: TableSource, request: JobRequest) -> TableSource:
    hook = source_hook(source)
    if hook is None:
        return source
    hook.require_catalog(source.table)
    catalog = hook.catalog_spec()
    if catalog.is_same_catalog(request.catalog):
        return replace(source, connection=None, catalog=None)
    return replace(source, catalog=catalog)


def _field(source: Source, name: str) -> str:
    return f"{called(source.name)}: {name}"


def _database_address(field: str, conn_id: str) -> tuple[str, dict[str, str]]:
    """The address of the database of a connection, and properties of its driver; no secret.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``: there is none, or of another type.
        NotSupportedError: another kind of database, or of login.
    """
    connection = _connection(field, conn_id)
    kind = str(connection.conn_type)
    if kind == "jdbc":
        return _given_address(field, connection), {}
    if kind not in _TYPES:
        raise invalid(
            field,
            f"connection {conn_id!r} has the type {kind!r}",
            "Use a connection of one of the types jdbc, mysql, postgres.",
        )
    extra = connection.extra_dejson
    if extra.get("iam"):
        raise NotSupportedError(
            f"{field}: connection {conn_id!r} logs in by a token of AWS (iam).",
            "Use a connection with login and password.",
        )
    if not connection.host:
        raise invalid(field, f"connection {conn_id!r} has no host", "Set its host.")
    scheme, port = _TYPES[kind]
    host = f"[{connection.host}]" if ":" in connection.host else connection.host
    schema = quote(connection.schema or "", safe="")
    properties = {
        name: str(extra[key]) for key, name in _PROPERTIES[kind].items() if extra.get(key)
    }
    return f"jdbc:{scheme}://{host}:{connection.port or port}/{schema}", properties


def login(field: str, conn_id: str) -> Mapping[str, str]:
    """Login and password of a connection, which this process masks from here on."""
    connection = _connection(field, conn_id)
    given = {USER: connection.login, PASSWORD: connection.password}
    return masked({name: each for name, each in given.items() if each})


def _given_address(field: str, connection: Connection) -> str:
    url = str(connection.host or "").strip()
    if not url.startswith(_ADDRESSES):
        raise NotSupportedError(
            f"{field}: the host of connection {connection.conn_id!r} is no address of PostgreSQL, "
            "MySQL or MariaDB: of other databases it is not known how their types are read.",
            f"Begin it with one of: {', '.join(_ADDRESSES)}; or use python_source.",
        )
    if holds_secret(url):
        raise invalid(
            field,
            f"the host of connection {connection.conn_id!r} holds a secret, which would be seen",
            "Use the connection's login and password.",
        )
    return url.replace("jdbc:mariadb:", "jdbc:mysql:", 1)


def _connection(field: str, conn_id: str) -> Connection:
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        remedy = "Create it, or name another one."
        raise invalid(field, f"there is no connection {conn_id!r}", remedy) from None


def function_code(field: str, function: str) -> str:
    """The text of the module of ``module:function``.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``: there is no such module, or no text of it.
    """
    module = function.partition(":")[0]
    spec = _found(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise invalid(field, f"there is no module {module}", _REMEDY)
    try:
        return Path(spec.origin).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(field, f"{spec.origin} cannot be read: {error}", _REMEDY) from None


def _found(module: str) -> ModuleSpec | None:
    """Where a module is, part by part: importing its packages would run their code."""
    folders: list[str] | None = None
    name, spec = "", None
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = PathFinder.find_spec(name, folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or [])
    return spec
