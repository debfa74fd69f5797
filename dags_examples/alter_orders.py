"""Changes the columns of the table that ``merge_orders`` creates, once it is triggered.

The first task only reports what would change, old and new; the second one changes it. Triggered
again, both find that nothing is left to do. It needs the connections ``paimon_default`` (the
warehouse) and ``spark_default``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_merge.operators.alter_table import AlterTableOperator
from airflow_provider_merge.operators.table_changes import add_column, comment_column, widen_column

CHANGES = [
    add_column("discount", "DECIMAL(5, 2)", comment="in percent", if_not_exists=True),
    add_column("address.country", "STRING", if_not_exists=True),
    widen_column("amount", "DECIMAL(12, 2)"),
    comment_column("amount", "gross"),
]

with DAG("alter_orders", schedule=None, start_date=datetime(2024, 1, 1), catchup=False) as dag:
    preview = AlterTableOperator(
        task_id="preview", target="shop.orders", changes=CHANGES, dry_run=True
    )
    alter = AlterTableOperator(task_id="alter", target="shop.orders", changes=CHANGES)

    preview >> alter
