"""``DeleteFromOperator``: DELETE FROM a lakehouse table, as one atomic snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_merge.operators._shared.guards import DELETED_ROWS, DeletedRowGuards
from airflow_provider_merge.operators._shared.where import WhereOperator
from spark_jobs.contract.statements import DeleteSpec


class DeleteFromOperator(DeletedRowGuards, WhereOperator):
    """Runs one DELETE with Spark and publishes one atomic snapshot.

    ``DELETE FROM target AS alias WHERE where``: give it as ``sql``, or as the parameters ``target``
    and ``where``. What has no template is checked when the DAG is parsed; everything is checked
    before Spark starts. Guide: docs/operators/update_and_delete.md.

    :param sql: the statement as SQL text, or the path of a ``.sql`` file
    :param target: the table, ``database.table``
    :param where: which rows to delete, as Spark SQL text; ``ALL_ROWS``, or left out: every row
    :param alias: the target's name in expressions; default: the table's name
    :param sources: name → source; subqueries use the names like tables
    :param database: the database of tables that the SQL names without a database
    """

    template_fields: Sequence[str] = (*WhereOperator.template_fields, *DELETED_ROWS)

    spec_type = DeleteSpec
    required_parts = ("target",)
    parts = ("target", "where", "alias")

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check_parameters()

    def built_statement(self) -> DeleteSpec:
        """The statement from ``target`` and ``where``."""
        return DeleteSpec(self.target_alias(), self.where_text())
