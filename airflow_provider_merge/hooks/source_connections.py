"""What sources name and only the worker finds: connections, catalogs behind them, code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook
from airflow_provider_merge.hooks.database_connection import database_address, login
from airflow_provider_merge.hooks.function_code import function_code
from spark_jobs.contract.connections import PASSWORD, scoped
from spark_jobs.contract.outside_sources import JdbcSource, PythonSource, SparkSource
from spark_jobs.contract.request import JobRequest, Source, TableSource
from spark_jobs.contract.source_names import called
from spark_jobs.errors import RequestError


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
        url, properties = database_address(_field(source, "conn_id"), source.connection)
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
