"""``TruncateTableOperator``: all rows of a table or of a partition deleted, unread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow_provider_merge.operators._shared.clearing import ClearingOperator
from airflow_provider_merge.operators._shared.partitions import partition_spec
from spark_jobs.contract.inserts import TruncateTableSpec


class TruncateTableOperator(ClearingOperator):
    """Deletes all rows of a table or partition, without reading them, as one atomic snapshot.

    ``TRUNCATE TABLE target PARTITION (partition)``: give it as ``sql``, or as the parameters
    ``target`` and ``partition``. Guide: docs/operators/insert_overwrite.md.

    :param sql: the statement as SQL text, or the path of a ``.sql`` file
    :param database: the database of a table that ``sql`` names without a database
    :param target: the table, ``database.table``
    :param partition: partition column → value; default: the whole table
    :param last_writer_wins: also delete what others commit to the same partitions meanwhile,
        instead of running again after the conflict
    """

    template_fields: Sequence[str] = (*ClearingOperator.template_fields, "partition")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **ClearingOperator.template_fields_renderers,
        "partition": "json",
    }

    spec_type = TruncateTableSpec
    required_parts = ("target",)
    parts = ("target", "partition")
    selects_rows = ("partition",)
    remedies: ClassVar[Mapping[str, str]] = {
        "partition": "To delete all rows of the table, leave partition out in the DAG file."
    }

    def __init__(self, *, partition: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.partition = partition
        self.check_parameters()

    def built_statement(self) -> TruncateTableSpec:
        """The statement from ``partition``."""
        return TruncateTableSpec(partition_spec("partition", self.partition))
