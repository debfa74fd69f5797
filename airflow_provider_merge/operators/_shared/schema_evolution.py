"""The base of statements that can add the source's columns to their table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from airflow_provider_merge.operators._shared.guards import SOURCE_ROWS, SourceRowGuards
from airflow_provider_merge.operators._shared.statement import StatementOperator
from airflow_provider_merge.operators._shared.values import flag
from airflow_provider_merge.templates import is_template
from spark_jobs.contract.inserts import InsertStatement
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.statements import MergeSpec


class EvolvingOperator(SourceRowGuards, StatementOperator):
    """A statement with schema evolution.

    :param schema_evolution: true: the table gets the columns and nested fields of the source that
        it lacks, as with WITH SCHEMA EVOLUTION in the SQL
    :param type_widening: true: with schema evolution, columns of the table get the source's types
        where these are wider
    """

    template_fields: Sequence[str] = (
        *StatementOperator.template_fields,
        *SOURCE_ROWS,
        "schema_evolution",
        "type_widening",
    )

    def __init__(
        self,
        *,
        schema_evolution: bool | str | None = None,
        type_widening: bool | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.schema_evolution = schema_evolution
        self.type_widening = type_widening

    def statement(self) -> MergeSpec | InsertStatement:
        """The statement of the rendered parameters."""
        spec = cast("MergeSpec | InsertStatement", super().statement())
        return replace(spec, schema_evolution=spec.schema_evolution or self._evolves())

    def job_options(self) -> JobOptions:
        """The options of the request, from rendered parameters."""
        return replace(super().job_options(), type_widening=self._widens() or None)

    def check_parameters(self) -> None:
        """Check these parameters too, as far as they are known; raises the same."""
        super().check_parameters()
        widens = not is_template(self.type_widening) and self._widens()
        if is_template(self.schema_evolution) or self._evolves() or not widens:
            return
        if self.sql is None or (self.knows_text() and not self._text_evolves()):
            self.refuse(
                "type_widening",
                "needs schema_evolution",
                "Set schema_evolution=True, or write WITH SCHEMA EVOLUTION in the text.",
            )

    def _text_evolves(self) -> bool:
        return cast("MergeSpec | InsertStatement", self.parsed().statement).schema_evolution

    def _evolves(self) -> bool:
        return flag("schema_evolution", self.schema_evolution)

    def _widens(self) -> bool:
        return flag("type_widening", self.type_widening)
