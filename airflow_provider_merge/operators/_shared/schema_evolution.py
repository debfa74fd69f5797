"""The base of statements that can add the source's columns to their table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, cast

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.guards import SOURCE_ROWS, SourceRowGuards
from airflow_provider_merge.operators._shared.statement import StatementOperator
from airflow_provider_merge.operators._shared.values import flag
from airflow_provider_merge.templates import is_template
from spark_jobs.contract.checks import did_you_mean
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.inserts import InsertStatement
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.statements import MergeSpec

_SCHEMA_CHANGES: Final = ("ignore", "fail", "append", "widen")
# Of dbt's words that are none of these.
_OF_DBT: Final = {
    "append_new_columns": "Write append, which is the same here.",
    "sync_all_columns": "Write append; no column is ever dropped here by a source that lacks it: "
    "use AlterTableOperator.",
}


class EvolvingOperator(SourceRowGuards, StatementOperator):
    """A statement with schema evolution.

    :param schema_evolution: true: the table gets the columns and nested fields of the source that
        it lacks, as with WITH SCHEMA EVOLUTION in the SQL
    :param type_widening: true: with schema evolution, columns of the table get the source's types
        where these are wider
    :param on_schema_change: in place of both, in dbt's words, for a source with other columns than
        the table: ``ignore`` them, ``fail`` with SCHEMA_CHANGED, ``append`` new columns, ``widen``
        types, too
    """

    template_fields: Sequence[str] = (
        *StatementOperator.template_fields,
        *SOURCE_ROWS,
        "schema_evolution",
        "type_widening",
        "on_schema_change",
    )

    may_ignore_columns: ClassVar[bool] = True

    def __init__(
        self,
        *,
        schema_evolution: bool | str | None = None,
        type_widening: bool | str | None = None,
        on_schema_change: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.schema_evolution = schema_evolution
        self.type_widening = type_widening
        self.on_schema_change = on_schema_change

    def statement(self) -> MergeSpec | InsertStatement:
        """The statement of the rendered parameters."""
        spec = cast("MergeSpec | InsertStatement", super().statement())
        asked = spec.schema_evolution and self._on_schema_change() not in ("ignore", "fail")
        return replace(spec, schema_evolution=asked or self._evolves())

    def guards(self) -> Guards | None:
        """The guards; with ``on_schema_change="fail"``, the source's columns are one."""
        guards = super().guards()
        if self._on_schema_change() != "fail":
            return guards
        return replace(guards or Guards(), same_columns=True)

    def job_options(self) -> JobOptions:
        """The options of the request, from rendered parameters."""
        return replace(super().job_options(), type_widening=self._widens() or None)

    def check_parameters(self) -> None:
        """Check these parameters too, as far as they are known; raises the same."""
        super().check_parameters()
        if is_template(self.on_schema_change) or self._on_schema_change() is not None:
            return
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
        return self._on_schema_change() in ("append", "widen") or flag(
            "schema_evolution", self.schema_evolution
        )

    def _widens(self) -> bool:
        return self._on_schema_change() == "widen" or flag("type_widening", self.type_widening)

    def _on_schema_change(self) -> str | None:
        """``on_schema_change``, which says the same as the two older parameters, and more.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        value = self.on_schema_change
        if value is None:
            return None
        if value not in _SCHEMA_CHANGES:
            problem = f"{value!r} is not one of: {', '.join(_SCHEMA_CHANGES)}"
            remedy = _OF_DBT.get(str(value)) or did_you_mean(value, _SCHEMA_CHANGES)
            raise invalid("on_schema_change", problem, remedy)
        if value == "ignore" and not self.may_ignore_columns:
            problem = "'ignore' is not for INSERT, which stores each column of its source"
            remedy = "Select the columns in the source, or choose fail, append or widen."
            raise invalid("on_schema_change", problem, remedy)
        if self.schema_evolution is not None or self.type_widening is not None:
            problem = "cannot be combined with schema_evolution and type_widening"
            raise invalid("on_schema_change", problem, "Leave these out.")
        return value
