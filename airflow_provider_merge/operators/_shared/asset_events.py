"""What consumers of a table's asset learn of the task that changed it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_merge.assets import is_table, same_asset, table_asset
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.operators._shared.event_keys import partition_keys
from airflow_provider_merge.operators._shared.results import asset_extra
from airflow_provider_merge.table_names import quoted_name
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import JobResult

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator


@dataclass(frozen=True, slots=True)
class TableChange:
    """What one statement did; ``kind`` is that of the statement, such as ``merge``."""

    table: TableName
    kind: str
    result: JobResult

    def extra(self) -> dict[str, Any]:
        """The change as the extra of an event."""
        return asset_extra(self.kind, self.result)


def keep_written(operator: SparkJobOperator, context: Context, tables: Iterable[TableName]) -> None:
    """Leave a mapped task only those tables among its outlets that it changed.

    Airflow sends an event for each outlet, and the other tables are those of its siblings.
    """
    index = context["ti"].map_index
    if index is None or index < 0:
        return
    assets = [table_asset(operator.catalog_conn_id, quoted_name(each)) for each in tables]
    changed = [same_asset(operator.outlets, asset) for asset in assets]
    operator.outlets = [each for each in operator.outlets if not is_table(each) or each in changed]


def emit_event(
    operator: SparkJobOperator,
    context: Context,
    hook: CatalogHook,
    changes: Sequence[TableChange],
    *,
    with_partition_keys: bool,
) -> None:
    """Fill the task's event of the one table of ``changes``, which becomes an outlet.

    The extra is that of the last change; of several, ``statements`` has that of each.
    """
    table = changes[-1].table
    asset = table_asset(operator.catalog_conn_id, quoted_name(table))
    outlet = same_asset(operator.outlets, asset)
    if outlet is None:
        # Its name was a template. Airflow knows the asset if some DAG names it.
        operator.outlets = [*operator.outlets, asset]
        outlet = asset
    event = context["outlet_events"][outlet]
    event.extra = changes[-1].extra()
    if len(changes) > 1:
        event.extra["statements"] = [each.extra() for each in changes]
    if with_partition_keys:
        keys = [key for each in changes for key in partition_keys(hook, table, each.result)]
        event.add_partitions(list(dict.fromkeys(keys)))


def emit_events(
    operator: SparkJobOperator,
    context: Context,
    hook: CatalogHook,
    changes: Iterable[TableChange],
) -> None:
    """Fill the events of a task with several statements, one for each table."""
    of_tables: dict[str, list[TableChange]] = {}
    for each in changes:
        of_tables.setdefault(str(each.table), []).append(each)
    keep_written(operator, context, [each[0].table for each in of_tables.values()])
    for several in of_tables.values():
        emit_event(operator, context, hook, several, with_partition_keys=False)
