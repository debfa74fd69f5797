"""The partition keys of a task's asset event."""

from __future__ import annotations

import logging
from typing import Final

from airflow_provider_merge.hooks.catalog import CatalogHook
from spark_jobs.contract.partition_names import only_value
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import JobError

log = logging.getLogger(__name__)
_LONGEST: Final = 250


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
