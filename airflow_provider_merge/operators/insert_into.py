"""``InsertIntoOperator``: INSERT INTO a lakehouse table, as one atomic snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from airflow_provider_merge.operators._shared.inserts import InsertOperator
from spark_jobs.contract.inserts import InsertIntoSpec


class InsertIntoOperator(InsertOperator):
    """``INSERT INTO target PARTITION (partition) (columns) source``

    The statement is given as ``sql``, or in parts: ``target``, ``source`` and the others. It is
    checked when the DAG is parsed as far as it holds no template, and again, rendered, before Spark
    starts.

    :param sql: the statement as text, or the path of a ``.sql`` file
    :param sources: name → source, which ``sql`` can use like tables
    :param database: the database of tables that ``sql`` names without one
    :param target: the table, ``database.table``
    :param source: ``file_source(…)``, ``table_source(…)``, ``sql_source(…)`` or the same as a dict
    :param partition: partition column → value, which every row gets or has
    :param columns: the columns that the source's columns are for; all of the table when left out
    :param by_name: each column of the source is for the column of the same name
    :param order_by: columns that sort the rows of each new file, perhaps with DESC behind them
    """

    spec_type = InsertIntoSpec

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check_parameters()

    def statement(self) -> InsertIntoSpec:
        """The statement of the rendered parameters."""
        spec = cast("InsertIntoSpec", super().statement())
        return replace(spec, order_by=self.sort_columns())

    def built_statement(self) -> InsertIntoSpec:
        """The statement of the parts."""
        return InsertIntoSpec(**self.rows())
