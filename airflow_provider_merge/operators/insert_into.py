"""``InsertIntoOperator``: INSERT INTO a lakehouse table, as one atomic snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from airflow_provider_merge.operators._shared.dry_run_of import DRY_RUN_OF, IncrementalOperator
from airflow_provider_merge.operators._shared.guards import LATE_ROWS, PARTITIONS, LateRowGuards
from airflow_provider_merge.operators._shared.inserts import InsertOperator
from spark_jobs.contract.inserts import InsertIntoSpec


class InsertIntoOperator(LateRowGuards, IncrementalOperator, InsertOperator):
    """Runs one INSERT INTO with Spark and publishes one atomic snapshot.

    ``INSERT INTO target PARTITION (partition) (columns) source``: give it as ``sql``, or as the
    parameters ``target``, ``source`` and others. What has no template is checked when the DAG is
    parsed; everything is checked before Spark starts. Guide: docs/operators/insert_overwrite.md.

    :param sql: the statement as SQL text, or the path of a ``.sql`` file
    :param sources: name → source; ``sql`` uses the names like tables
    :param database: the database of tables that ``sql`` names without a database
    :param target: the table, ``database.table``
    :param source: ``file_source(…)``, ``table_source(…)``, ``sql_source(…)`` or the same as a dict
    :param partition: partition column → value: every row has this value or gets it
    :param columns: the table's columns, in the order of the source's columns; default: all
    :param by_name: assign each source column to the table column of the same name
    :param order_by: columns that sort the rows of each new file, optionally with DESC
    :param schema_evolution: true: add the columns and nested fields of the source that the table
        lacks, also if ``sql`` does not say WITH SCHEMA EVOLUTION
    :param type_widening: true: with schema evolution, give columns of the table the source's types
        where these are wider
    """

    template_fields: Sequence[str] = (
        *InsertOperator.template_fields,
        *PARTITIONS,
        LATE_ROWS,
        DRY_RUN_OF,
    )

    spec_type = InsertIntoSpec

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check_parameters()

    def statement(self) -> InsertIntoSpec:
        """The statement of the rendered parameters."""
        spec = cast("InsertIntoSpec", super().statement())
        return replace(spec, order_by=self.sort_columns())

    def built_statement(self) -> InsertIntoSpec:
        """The statement from the parameters other than ``sql``."""
        return InsertIntoSpec(**self.rows())
