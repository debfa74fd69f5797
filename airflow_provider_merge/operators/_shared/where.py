"""The base of DELETE and UPDATE: rows of one table that WHERE selects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, cast

from airflow_provider_merge.operators._shared.dry_run_of import DRY_RUN_OF, IncrementalOperator
from airflow_provider_merge.operators._shared.guards import (
    PARTITIONS,
    REWRITES,
    PartitionGuards,
    RewriteGuards,
)
from airflow_provider_merge.operators._shared.names import check_row_names
from airflow_provider_merge.operators._shared.source_parameters import to_named_sources
from airflow_provider_merge.operators._shared.sql_parameter import of_parameter
from airflow_provider_merge.operators._shared.statement import StatementOperator
from airflow_provider_merge.operators._shared.values import identifier
from airflow_provider_merge.operators.clauses import ALL_ROWS
from airflow_provider_merge.sql.parser import parse_where
from airflow_provider_merge.templates import has_template, is_template, with_words
from spark_jobs.contract.request import Source, TableName
from spark_jobs.contract.statements import DeleteSpec, UpdateSpec
from spark_jobs.errors import JobError

# No subquery reads a table without one of these.
_READS: Final = re.compile(r"\b(?:FROM|TABLE)\b", re.IGNORECASE)


class WhereOperator(RewriteGuards, PartitionGuards, IncrementalOperator, StatementOperator):
    """A statement with ``where`` and ``alias``.

    :param where: which rows to change, as Spark SQL text; every row: ``ALL_ROWS``, as by default
    :param alias: the target's name in expressions; default: the table's name
    """

    template_fields: Sequence[str] = (
        *StatementOperator.template_fields,
        *REWRITES,
        *PARTITIONS,
        DRY_RUN_OF,
        "where",
        "alias",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **StatementOperator.template_fields_renderers,
        "where": "sql",
    }

    selects_rows = ("where",)
    remedies: ClassVar[Mapping[str, str]] = {
        "where": "To change every row write where=ALL_ROWS, or leave it out in the DAG file."
    }

    def __init__(
        self, *, where: str | None = None, alias: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.where = where
        self.alias = alias

    def statement(self) -> DeleteSpec | UpdateSpec:
        """The statement of the rendered parameters, its names checked."""
        spec = cast("DeleteSpec | UpdateSpec", super().statement())
        check_row_names(spec, self.target_table(), is_text=self.sql is not None)
        return spec

    def built_sources(self) -> tuple[Source, ...]:
        """The sources that were given, then the tables that subqueries read."""
        return (*to_named_sources(self.sources), *self._parsed_where()[1])

    def check_parts(self) -> tuple[Source, ...]:
        """Check ``where`` unless a template is in it, or decides what the names in it mean.

        Returns what its subqueries read, as known.
        """
        if is_template(self.where) or is_template(self.database) or is_template(self.sources):
            return self.readable_sources([self.where], parse_where)
        return self._parsed_where()[1]

    def texts(self) -> list[str]:
        """The condition too."""
        return [*super().texts(), *([self.where] if isinstance(self.where, str) else [])]

    def target_alias(self) -> str:
        """What expressions call the target."""
        if self.alias is None:
            return self.target_table().table
        return identifier("alias", self.alias)

    def readable_sources(
        self, texts: Iterable[Any], parse: Callable[..., tuple[str, tuple[Source, ...]]]
    ) -> tuple[Source, ...]:
        """What subqueries read in texts of which some have templates, as far as it is known."""
        if is_template(self.sources):
            return ()
        names, database = self.source_names(), self.readable_database()
        sources: list[Source] = []
        for text in texts:
            if not isinstance(text, str) or not _READS.search(text):
                continue  # to read a text at all takes time
            words = with_words(text)
            with suppress(JobError):  # the rendered text decides
                sources += () if words is None else parse(words, names, database)[1]
        return tuple(sources)

    def where_text(self) -> str | None:
        """The condition, with views for the tables of its subqueries."""
        return self._parsed_where()[0]

    def _parsed_where(self) -> tuple[str | None, tuple[Source, ...]]:
        if self.where is None or self.where == ALL_ROWS:
            return None, ()
        names = self.source_names()
        with of_parameter("where"):
            return parse_where(self.where, names, self.database, self.qualified_target())

    def qualified_target(self) -> TableName | None:
        """The target, unless a template or the alias may give ``database.table.x`` a meaning."""
        if has_template([self.target, self.alias]):
            return None
        table = self.target_table()
        return None if str(self.target_alias()).lower() == table.database.lower() else table
