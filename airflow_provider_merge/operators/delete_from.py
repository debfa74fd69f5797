"""``DeleteFromOperator``: DELETE FROM a lakehouse table, as one atomic snapshot."""

from __future__ import annotations

from typing import Any

from airflow_provider_merge.operators._shared.where import WhereOperator
from spark_jobs.contract.statements import DeleteSpec


class DeleteFromOperator(WhereOperator):
    """``DELETE FROM target AS alias WHERE where``

    The statement is given as ``sql``, or in parts: ``target`` and ``where``. It is checked when the
    DAG is parsed as far as it holds no template, and again, rendered, before Spark starts.

    :param sql: the statement as text, or the path of a ``.sql`` file
    :param target: the table, ``database.table``
    :param where: which rows to delete, as Spark SQL text; every row when left out
    :param alias: what expressions call the target; the table's name when left out
    :param sources: name → source, which subqueries can use like tables
    :param database: the database of tables that the text names without one
    """

    spec_type = DeleteSpec
    required_parts = ("target",)
    parts = ("target", "where", "alias")

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check_parameters()

    def built_statement(self) -> DeleteSpec:
        """The statement of ``target`` and ``where``."""
        return DeleteSpec(self.target_alias(), self.where_text())
