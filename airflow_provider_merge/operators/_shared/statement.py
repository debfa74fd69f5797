"""The base of operators whose statement is SQL text or parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from airflow_provider_merge.checks.lines import on_line
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.assignments import check_assignments
from airflow_provider_merge.operators._shared.row_operator import RowOperator
from airflow_provider_merge.operators._shared.source_parameters import (
    require_read,
    to_named_sources,
)
from airflow_provider_merge.operators._shared.sql_parameter import SqlOperator, of_parameter
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.sql.parser import ParsedStatement, parse_statement
from airflow_provider_merge.templates import (
    chosen_later,
    has_template,
    is_known_name,
    is_template,
    with_placeholders,
)
from spark_jobs.contract.inserts import PartitionStatement
from spark_jobs.contract.request import Source, TableName
from spark_jobs.contract.statements import RowStatement
from spark_jobs.errors import JobError

Spec = RowStatement | PartitionStatement


class StatementOperator(SqlOperator, RowOperator):
    """Runs one statement, given as ``sql`` or as parameters.

    :param sql: the statement as SQL text, or the path of a ``.sql`` file
    :param sources: name → source; the SQL uses the names like tables
    :param database: the database of tables that the SQL names without a database
    """

    template_fields: Sequence[str] = (
        *RowOperator.template_fields,
        "sql",
        "sources",
        "database",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **TableOperator.template_fields_renderers,
        "sql": "sql",
        "sources": "json",
        "checks": "json",
    }

    # What the text begins with, the parameters that stand in its place, and those of them that
    # cannot be left out.
    spec_type: ClassVar[type[Spec]]
    parts: ClassVar[tuple[str, ...]]
    required_parts: ClassVar[tuple[str, ...]]
    examples: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        *,
        sql: str | None = None,
        sources: Mapping[str, Any] | None = None,
        database: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.sources = sources
        self.database = database

    @abstractmethod
    def built_statement(self) -> Spec:
        """The statement from the parameters other than ``sql``.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """

    @abstractmethod
    def built_sources(self) -> tuple[Source, ...]:
        """What that statement reads; raises the same."""

    @abstractmethod
    def check_parts(self) -> tuple[Source, ...]:
        """Check these parameters, of which some may still be templates; raises the same.

        Returns the known sources, with a placeholder for each template.
        """

    def needed_parts(self) -> tuple[str, ...]:
        """The parameters that must be given in place of ``sql``."""
        return self.required_parts

    def texts(self) -> list[str]:
        """The texts that may name sources."""
        return [self.sql] if isinstance(self.sql, str) else []

    def statement_text(self) -> str | None:
        """``sql`` of the rendered parameters."""
        return self.sql

    def statement(self) -> Spec:
        """The statement from rendered parameters."""
        spec = self.built_statement() if self.sql is None else self.parsed().statement
        if isinstance(spec, RowStatement):
            check_assignments(spec, is_text=self.sql is not None)
        return spec

    def target_table(self) -> TableName:
        """The target from rendered parameters."""
        return super().target_table() if self.sql is None else self.parsed().target

    def request_sources(self) -> tuple[Source, ...]:
        """The given sources, then the others that the statement needs."""
        require_read(self.sources, [*self.texts(), *self.check_texts()])
        if self.sql is None:
            return self.built_sources()
        return (*to_named_sources(self.sources), *self.parsed().sources)

    def located(self, error: JobError) -> JobError:
        """With the line of the text."""
        return error if self.sql is None else on_line(error, self.sql, self.sql_label())

    def parsed(self) -> ParsedStatement:
        """The rendered text.

        Raises:
            RequestError: the text is invalid; the message has line and column.
            NotSupportedError: the statement is not supported.
        """
        if not isinstance(self.sql, str):
            raise invalid("sql", "expected text")
        names = self.source_names()
        with of_parameter(self.sql_label()):
            parsed = parse_statement(self.sql, names, self.database)
        if not isinstance(parsed.statement, self.spec_type):
            kind, own = parsed.statement.kind.upper(), self.spec_type.kind.upper()
            raise invalid("sql", f"is a statement of the kind {kind}, not {own}")
        return parsed

    def source_names(self) -> Iterable[str]:
        """The names that the statement can use like tables."""
        if self.sources is not None and not isinstance(self.sources, Mapping):
            raise invalid("sources", "expected a dict of name -> source")
        return tuple(self.sources or ())

    def check_parameters(self) -> None:
        """Check what is known when the DAG is parsed.

        Raises:
            RequestError: names the parameter, and line and column of the text.
            NotSupportedError: the statement is not supported.
        """
        self._require_one_way()
        if self.sql is None:
            if not is_template(self.target):
                self.announce_target(self.target_table())
            self.announce_read(self.check_parts())
        elif self.reads_later():
            self._announce_plain_names()
            return
        elif self.knows_text():
            self.announce_read(self.parsed().sources)
            self.announce_target(self.target_table())
            require_read(self.sources, [*self.texts(), *self.check_texts()])
        if not is_template(self.sources) and not chosen_later({"sources": self.sources or {}}):
            self.announce_read(to_named_sources(with_placeholders(self.sources)))
        if not has_template([getattr(self, name) for name in self.template_fields]):
            self.check_request()

    def _announce_plain_names(self) -> None:
        """Announce the tables whose names in the text are no templates."""
        readable = self.readable_text()
        if readable is None or chosen_later({"sources": self.sources or {}}):
            return
        text, database = readable
        try:
            parsed = parse_statement(text, self.source_names(), database)
        except JobError:
            return  # the rendered text decides
        given = to_named_sources(with_placeholders(self.sources))
        self.announce_read((*given, *parsed.sources))
        if is_known_name(parsed.target):
            self.announce_target(parsed.target)

    def knows_text(self) -> bool:
        """Whether the text, and what its names mean, are known already."""
        return not (self.reads_later() or is_template(self.database) or is_template(self.sources))

    def _require_one_way(self) -> None:
        self.drop_default_text(self.parts)
        if self.sql is None:
            for name in self.needed_parts():
                if getattr(self, name) is None:
                    example = f", such as {self.examples[name]}" if name in self.examples else ""
                    remedy = f"Give it{example}, or the whole statement as sql."
                    raise invalid(name, "missing", remedy)
            return
        for name in self.parts:
            if getattr(self, name) is not None:
                self.refuse(name, "cannot be combined with sql", "Write it in the SQL text.")
