"""Names of tables that begin with a catalog: it must be the connection's."""

from __future__ import annotations

from airflow_provider_merge.hooks.catalog import CatalogHook
from spark_jobs.contract.request import JobRequest, TableSource


def of_connection(request: JobRequest, hook: CatalogHook) -> JobRequest:
    """``request``, whose tables are all in the catalog of ``hook``.

    Raises:
        RequestError: REQUEST_INVALID, naming the connection's field.
    """
    tables = [each.table for each in request.sources if isinstance(each, TableSource)]
    for table in tables if request.target is None else [request.target, *tables]:
        hook.require_catalog(table)
    return request
