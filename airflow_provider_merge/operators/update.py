"""``UpdateOperator``: UPDATE a lakehouse table, as one atomic snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow_provider_merge.exceptions import invalid, no_text
from airflow_provider_merge.operators._shared.guards import UPDATED_ROWS, UpdatedRowGuards
from airflow_provider_merge.operators._shared.sql_parameter import of_parameter
from airflow_provider_merge.operators._shared.where import WhereOperator
from airflow_provider_merge.sql.parser import parse_value
from airflow_provider_merge.templates import has_template, is_template, with_placeholders
from spark_jobs.contract.request import Source
from spark_jobs.contract.statements import Assignment, UpdateSpec


class UpdateOperator(UpdatedRowGuards, WhereOperator):
    """Runs one UPDATE with Spark and publishes one atomic snapshot.

    ``UPDATE target AS alias SET column = value, … WHERE where``: give it as ``sql``, or as the
    parameters ``target``, ``set`` and ``where``. What has no template is checked when the DAG is
    parsed; everything is checked before Spark starts. Guide: docs/operators/update_and_delete.md.

    :param sql: the statement as SQL text, or the path of a ``.sql`` file
    :param target: the table, ``database.table``
    :param set: column → value as Spark SQL text; a column may be nested (``address.city``)
    :param where: which rows to update, as Spark SQL text; ``ALL_ROWS``, or left out: every row
    :param alias: the target's name in expressions; default: the table's name
    :param sources: name → source; subqueries use the names like tables
    :param database: the database of tables that the SQL names without a database
    """

    template_fields: Sequence[str] = (*WhereOperator.template_fields, *UPDATED_ROWS, "set")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **WhereOperator.template_fields_renderers,
        "set": "json",
    }

    spec_type = UpdateSpec
    required_parts = ("target", "set")
    parts = (*required_parts, "where", "alias")

    def __init__(
        self,
        *,
        set: Mapping[str, str] | None = None,  # noqa: A002  # as SQL calls it
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.set = set
        self.check_parameters()

    def built_statement(self) -> UpdateSpec:
        """The statement from ``target``, ``set`` and ``where``."""
        values = {column: text for column, (text, _) in self._parsed_values().items()}
        return UpdateSpec(self.target_alias(), _assignments(values), self.where_text())

    def built_sources(self) -> tuple[Source, ...]:
        """The given sources, then the tables that subqueries read, each once."""
        sources = list(super().built_sources())
        for source in self._read_by_values():
            sources += [] if source in sources else [source]
        return tuple(sources)

    def check_parts(self) -> tuple[Source, ...]:
        """Check ``set``, unless it is a template, and ``where``; returns the known sources."""
        if is_template(self.set):
            return super().check_parts()
        _assignments(with_placeholders(self.set))
        if has_template([self.set, self.database]) or is_template(self.sources):
            values: Any = self.set
            read = self.readable_sources(values.values(), parse_value)
            return (*super().check_parts(), *read)
        return (*super().check_parts(), *self._read_by_values())

    def texts(self) -> list[str]:
        """The values too."""
        values: Any = self.set.values() if isinstance(self.set, Mapping) else ()
        return [*super().texts(), *(each for each in values if isinstance(each, str))]

    def _read_by_values(self) -> list[Source]:
        return [source for _, sources in self._parsed_values().values() for source in sources]

    def _parsed_values(self) -> dict[str, tuple[str, tuple[Source, ...]]]:
        """The text of each column's value, and the tables that its subqueries read."""
        parsed = {}
        names, target = self.source_names(), self.qualified_target()
        for assignment in _assignments(self.set):
            with of_parameter(f"set.{assignment.column}"):
                parsed[assignment.column] = parse_value(
                    assignment.value, names, self.database, target
                )
        return parsed


def _assignments(values: Any) -> tuple[Assignment, ...]:
    if not isinstance(values, Mapping):
        problem = f"expected a dict of column -> value, found {type(values).__name__}"
        raise invalid("set", problem, "Write {'column': 'value as Spark SQL'}.")
    if not values:
        raise invalid("set", "is empty", "Name at least one column and its value.")
    for column, value in values.items():
        if not isinstance(value, str):
            raise no_text(f"set.{column}", value)
    return tuple(Assignment(column, value) for column, value in values.items())
