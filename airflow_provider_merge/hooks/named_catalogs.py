"""Tables of a request: in the catalog of the operator, or of a connection that a source names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import CatalogHook, catalog_hook
from spark_jobs.contract.connections import scoped
from spark_jobs.contract.request import JobRequest, Source, TableSource
from spark_jobs.contract.source_names import called
from spark_jobs.errors import RequestError


def of_connection(request: JobRequest, hook: CatalogHook) -> JobRequest:
    """``request``, whose tables are in the catalog of ``hook`` or have their catalog with them.

    Raises:
        RequestError: REQUEST_INVALID, naming the connection's field, or the source whose connection
            is missing or of another type.
        NotSupportedError: the catalog of a source is not opened.
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
        field = f"{called(source.name)}: conn_id"
        raise invalid(field, error.problem, error.remedy) from None


def source_credentials(request: JobRequest) -> Mapping[str, str]:
    """The secrets of the connections that sources name."""
    found: dict[str, str] = {}
    for source in request.sources:
        hook = source_hook(source) if isinstance(source, TableSource) else None
        if hook is not None and isinstance(source, TableSource) and source.connection:
            found |= scoped(source.connection, hook.credentials())
    return found


def _placed(source: Source, request: JobRequest) -> Source:
    hook = source_hook(source) if isinstance(source, TableSource) else None
    if hook is None or not isinstance(source, TableSource):
        return source
    hook.require_catalog(source.table)
    catalog = hook.catalog_spec()
    if catalog.is_same_catalog(request.catalog):
        return replace(source, connection=None, catalog=None)
    return replace(source, catalog=catalog)
