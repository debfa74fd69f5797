"""The tables that a task reads, as its inlets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from airflow.sdk import Asset

from airflow_provider_merge.assets import same_asset, table_asset
from airflow_provider_merge.table_names import quoted_name
from airflow_provider_merge.templates import PLACEHOLDER, is_known_name, is_template
from spark_jobs.contract.request import Source, TableSource


class Reader(Protocol):
    """An operator that reads tables of a catalog."""

    catalog_conn_id: str
    inlets: list[Asset]


def announce_sources(operator: Reader, sources: Iterable[Source]) -> None:
    """Make the tables among the sources inlets of the task, if the catalog is known by now."""
    for source in sources:
        if not isinstance(source, TableSource) or not is_known_name(source.table):
            continue
        connection = source.connection or operator.catalog_conn_id
        if not is_template(connection) and PLACEHOLDER not in connection:
            asset = table_asset(connection, quoted_name(source.table))
            if same_asset(operator.inlets, asset) is None:
                operator.inlets = [*operator.inlets, asset]
