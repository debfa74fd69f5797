"""Nightly compaction of a table: the partitions that are worth it, then expiry.

``worth_compacting`` reads the metadata of ``shop.events``, a table with partitions, without Spark.
If nothing is worth it, no compaction starts. Expiry runs every night: the files that a compaction
has replaced go when the snapshots that need them are old enough. It needs the connections
``paimon_default`` (the warehouse) and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, task

from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.operators.compact import CompactOperator
from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator

TABLE = "shop.events"
MIN_FILES = 5
MIN_RUNS = 5
MAX_DELETED = 0.2


def is_worth_it(facts):
    """Whether a partition has many small files, sorted runs or deleted rows."""
    return (
        facts.joinable_files >= MIN_FILES
        or facts.most_sorted_runs >= MIN_RUNS
        or (facts.marked_share or 0) > MAX_DELETED
    )


with DAG(
    "compact_events",
    schedule="@daily",
    start_date=datetime(2024, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"target": TABLE, "retries": 1},
) as dag:

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def worth_compacting():
        """The partitions that are worth it; none: skip the compaction."""
        facts = PaimonHook("paimon_default").compaction_facts(TABLE)
        return [dict(each.values) for each in facts if is_worth_it(each)]

    compact = CompactOperator(
        task_id="compact",
        partitions=worth_compacting(),
        min_files=MIN_FILES,
        sorted_runs=MIN_RUNS,
        deleted_share=MAX_DELETED,
        max_bytes="10 gb",
    )
    expire = ExpireSnapshotsOperator(
        task_id="expire", retain_min=10, older_than="7 d", trigger_rule="none_failed"
    )
    compact >> expire
