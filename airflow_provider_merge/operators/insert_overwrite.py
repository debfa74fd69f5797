"""``InsertOverwriteOperator``: replace whole partitions of a lakehouse table, atomically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast, get_args

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.guards import (
    DELETED_ROWS,
    REWRITES,
    DeletedRowGuards,
    RewriteGuards,
)
from airflow_provider_merge.operators._shared.inserts import InsertOperator
from airflow_provider_merge.operators._shared.partitions import partition_specs
from airflow_provider_merge.operators._shared.sql_parameter import of_parameter
from airflow_provider_merge.operators._shared.values import flag
from airflow_provider_merge.sql.parser import ParsedStatement
from airflow_provider_merge.templates import is_template
from spark_jobs.contract.checks import not_among
from spark_jobs.contract.inserts import InsertOverwriteSpec, OverwriteMode


class InsertOverwriteOperator(DeletedRowGuards, RewriteGuards, InsertOperator):
    """Replaces whole partitions with new rows, in one atomic snapshot.

    ``INSERT OVERWRITE target PARTITION (partition) (columns) source``: give it as ``sql``, or as
    the parameters ``target``, ``source`` and others. What has no template is checked when the DAG
    is parsed; everything is checked before Spark starts. Guide: docs/operators/insert_overwrite.md.

    :param mode: what to replace: ``dynamic``, the partitions that occur in the new rows;
        ``static``, every partition that ``partition``, or PARTITION in the SQL, selects;
        ``table``, everything
    :param sql: the statement as SQL text, or the path of a ``.sql`` file
    :param sources: name → source; ``sql`` uses the names like tables
    :param database: the database of tables that ``sql`` names without a database
    :param target: the table, ``database.table``
    :param source: ``file_source(…)``, ``table_source(…)``, ``sql_source(…)`` or the same as a dict
    :param partition: partition column → value; every row must belong there
    :param columns: the table's columns, in the order of the source's columns; default: all
    :param by_name: assign each source column to the table column of the same name
    :param order_by: columns that sort the rows of each new file, optionally with DESC
    :param expected_partitions: list of dicts of partition column → value: the only partitions that
        may change
    :param allow_empty: an empty source may clear the table in mode ``table``
    :param last_writer_wins: also replace what others commit to the same partitions meanwhile,
        instead of running again after the conflict
    :param whole_if_unpartitioned: mode ``dynamic`` does what Spark's does: of a table without
        partitions all rows are replaced, and by no rows nothing is, also if the spec is full
    :param schema_evolution: true: add the columns and nested fields of the source that the table
        lacks, also if ``sql`` does not say WITH SCHEMA EVOLUTION
    :param type_widening: true: with schema evolution, give columns of the table the source's types
        where these are wider
    """

    template_fields: Sequence[str] = (
        *InsertOperator.template_fields,
        *DELETED_ROWS,
        *REWRITES,
        "mode",
        "expected_partitions",
        "allow_empty",
        "last_writer_wins",
        "whole_if_unpartitioned",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **InsertOperator.template_fields_renderers,
        "expected_partitions": "json",
    }

    spec_type = InsertOverwriteSpec

    def __init__(
        self,
        *,
        mode: str,
        expected_partitions: Sequence[Mapping[str, Any]] | None = None,
        allow_empty: bool | str = False,
        last_writer_wins: bool | str = False,
        whole_if_unpartitioned: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.mode = mode
        self.expected_partitions = expected_partitions
        self.allow_empty = allow_empty
        self.last_writer_wins = last_writer_wins
        self.whole_if_unpartitioned = whole_if_unpartitioned
        if not is_template(mode):
            self._mode()
        self.check_parameters()

    def statement(self) -> InsertOverwriteSpec:
        """The statement from rendered parameters."""
        spec = cast("InsertOverwriteSpec", super().statement())
        if self.sql is None:
            return spec
        return replace(spec, mode=self._mode(), order_by=self.sort_columns(), **self._guards())

    def parsed(self) -> ParsedStatement:
        """The rendered text, with the parameter's mode if it is known."""
        parsed = super().parsed()
        if is_template(self.mode):
            return parsed
        if parsed.overwrites is not None and (parsed.overwrites == "dynamic") != (
            self._mode() == "dynamic"
        ):
            wanted = "'dynamic'" if parsed.overwrites == "dynamic" else "'static' or 'table'"
            problem = f"is {self.mode!r}, but the text asks for a {parsed.overwrites} overwrite"
            raise invalid("mode", problem, f"Write mode={wanted}, or change the text.")
        spec = cast("InsertOverwriteSpec", parsed.statement)
        with of_parameter(self.sql_label()):
            return replace(parsed, statement=replace(spec, mode=self._mode()))

    def built_statement(self) -> InsertOverwriteSpec:
        """The statement from the parameters other than ``sql``."""
        return InsertOverwriteSpec(mode=self._mode(), **self.rows(), **self._guards())

    def _mode(self) -> OverwriteMode:
        modes = get_args(OverwriteMode)
        if self.mode not in modes:
            raise not_among("mode", self.mode, modes)
        return cast("OverwriteMode", self.mode)

    def _guards(self) -> dict[str, Any]:
        expected = self.expected_partitions
        if expected is not None:
            expected = partition_specs("expected_partitions", expected)
        return {
            "expected_partitions": expected,
            "allow_empty": flag("allow_empty", self.allow_empty),
            "last_writer_wins": flag("last_writer_wins", self.last_writer_wins),
            "whole_if_unpartitioned": flag("whole_if_unpartitioned", self.whole_if_unpartitioned),
        }
