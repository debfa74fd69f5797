"""``DropPartitionsOperator``: partitions deleted, unread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow_provider_merge.operators._shared.clearing import ClearingOperator
from airflow_provider_merge.operators._shared.partitions import partition_specs
from airflow_provider_merge.operators._shared.values import flag
from spark_jobs.contract.inserts import DropPartitionsSpec


class DropPartitionsOperator(ClearingOperator):
    """Deletes partitions, without reading their rows, as one atomic snapshot.

    ``ALTER TABLE target DROP IF EXISTS PARTITION (…), PARTITION (…)``: give it as ``sql``, or as
    the parameters ``target`` and ``partitions``. Guide: docs/operators/insert_overwrite.md.

    :param sql: the statement as SQL text, or the path of a ``.sql`` file
    :param database: the database of a table that ``sql`` names without a database
    :param target: the table, ``database.table``
    :param partitions: list of dicts of partition column → value; a dict that does not name every
        partition column selects all partitions with its values
    :param if_exists: a missing partition is not an error
    :param last_writer_wins: also delete what others commit to the same partitions meanwhile,
        instead of running again after the conflict
    """

    template_fields: Sequence[str] = (*ClearingOperator.template_fields, "partitions", "if_exists")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **ClearingOperator.template_fields_renderers,
        "partitions": "json",
    }

    spec_type = DropPartitionsSpec
    required_parts = ("target", "partitions")
    parts = (*required_parts, "if_exists")

    def __init__(
        self,
        *,
        partitions: Sequence[Mapping[str, Any]] | None = None,
        if_exists: bool | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions
        self.if_exists = if_exists
        self.check_parameters()

    def built_statement(self) -> DropPartitionsSpec:
        """The statement from ``partitions``."""
        partitions = partition_specs("partitions", self.partitions)
        return DropPartitionsSpec(partitions, flag("if_exists", self.if_exists))
