"""What consumers of a table's asset learn of the task that changed it, partition keys among it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_merge.assets import is_table, same_asset, table_asset
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.operators._shared.results import asset_extra
from airflow_provider_merge.table_names import quoted_name
from spark_jobs.contract.partition_names import only_value
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator

log = logging.getLogger(__name__)
_LONGEST: Final = 250


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


def partition_keys(hook: CatalogHook, target: TableName, result: JobResult) -> list[str]:
    """The value of an only partition column, else the name (``day=2026-01-31/hour=7``).

    NULL has none, as a run could not tell it from the text; nor has what Airflow takes for no key:
    blanks, and more than 250 characters.
    """
    names = result.partitions
    if result.metrics.partitions_changed > len(names):
        log.warning(
            "%s partitions of %s changed; the asset event has keys of the first %s only.",
            *(result.metrics.partitions_changed, target, len(names)),
        )
    is_one = not any("/" in name for name in names) or _has_one_column(hook, target)
    keys = [only_value(name) if is_one else name for name in names]
    return [key for key in keys if key and key.strip() and len(key) <= _LONGEST]


def _has_one_column(hook: CatalogHook, target: TableName) -> bool:
    try:
        return len(hook.definition(target).partition_columns) == 1
    except (JobError, OSError) as error:
        # The statement is committed: no reason to fail.
        log.warning(
            "Partition keys are names of partitions, as %s cannot be read: %s", target, error
        )
        return False
