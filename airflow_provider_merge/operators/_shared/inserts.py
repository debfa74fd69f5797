"""The base of INSERT INTO and INSERT OVERWRITE: source rows for the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypedDict

from airflow_provider_merge.operators._shared.guards import LIMIT_FIELDS
from airflow_provider_merge.operators._shared.partitions import partition_spec
from airflow_provider_merge.operators._shared.schema_evolution import EvolvingOperator
from airflow_provider_merge.operators._shared.source_parameters import to_sources
from airflow_provider_merge.operators._shared.values import flag, names
from airflow_provider_merge.templates import (
    chosen_later,
    has_template,
    with_placeholders,
)
from spark_jobs.contract.request import Source
from spark_jobs.contract.source_names import INSERT_SOURCE


class Rows(TypedDict):
    """The fields that both statements of the contract have."""

    source: str
    partition: Mapping[str, str]
    columns: tuple[str, ...]
    by_name: bool
    order_by: tuple[str, ...]


class InsertOperator(EvolvingOperator):
    """A statement that writes the rows of ``source``.

    :param source: ``file_source(…)``, ``table_source(…)``, ``sql_source(…)`` or the same as a dict
    :param partition: partition column → value: every row has this value or gets it
    :param columns: the table's columns, in the order of the source's columns
    :param by_name: assign each source column to the table column of the same name
    :param order_by: columns that sort the rows of each new file, optionally with DESC
    """

    template_fields: Sequence[str] = (
        *EvolvingOperator.template_fields,
        "source",
        "partition",
        "columns",
        "by_name",
        "order_by",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **EvolvingOperator.template_fields_renderers,
        "source": "json",
        "partition": "json",
    }

    may_ignore_columns = False
    required_parts = ("target", "source")
    parts = (*required_parts, "partition", "columns", "by_name")

    def __init__(
        self,
        *,
        source: Mapping[str, Any] | None = None,
        partition: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        by_name: bool | str | None = None,
        order_by: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.partition = partition
        self.columns = columns
        self.by_name = by_name
        self.order_by = order_by

    def built_sources(self) -> tuple[Source, ...]:
        """The source, after the named sources that its query reads."""
        return to_sources(self.source, name=INSERT_SOURCE)

    def check_parts(self) -> tuple[Source, ...]:
        """Check the source, whichever templates it holds, and the rest where it holds none.

        Returns what is read, as known.
        """
        for name in ("sources", "database"):
            if getattr(self, name) is not None:
                self.refuse(
                    name, "belongs to sql", "Give sql_source(...) the sources that its query reads."
                )
        own = set(self.template_fields) - {
            *EvolvingOperator.template_fields,
            *LIMIT_FIELDS,
            "source",
        }
        if not has_template([getattr(self, name) for name in own]):
            self.built_statement()
        if chosen_later(self.source):
            return ()
        return to_sources(with_placeholders(self.source), name=INSERT_SOURCE)

    def rows(self) -> Rows:
        """The fields of the statement, from parameters."""
        return Rows(
            source=INSERT_SOURCE,
            partition=partition_spec("partition", self.partition),
            columns=names("columns", self.columns),
            by_name=flag("by_name", self.by_name),
            order_by=self.sort_columns(),
        )

    def sort_columns(self) -> tuple[str, ...]:
        """``order_by`` of the rendered parameters."""
        return names("order_by", self.order_by)
