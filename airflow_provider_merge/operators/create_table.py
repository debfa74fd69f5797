"""``CreateTableOperator``: create a table unless it exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.source_parameters import to_sources
from airflow_provider_merge.operators._shared.sql_parameter import SqlOperator, of_parameter
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators._shared.values import flag, plain
from airflow_provider_merge.sql.create_table import parse_create_table
from airflow_provider_merge.table_names import parse_table_name, quoted_name
from airflow_provider_merge.templates import (
    chosen_later,
    has_template,
    is_template,
    with_placeholders,
)
from spark_jobs.contract import codec
from spark_jobs.contract.request import Source, TableName
from spark_jobs.contract.source_names import MERGE_SOURCE
from spark_jobs.contract.statements import CreateTableSpec

_PARTS = ("target", "columns", "like", "partition_keys", "primary_key", "table_options", "comment")


def column(
    name: str,
    type: str,  # noqa: A002  # as the contract calls it
    *,
    nullable: bool = True,
    comment: str | None = None,
    default: str | None = None,
) -> dict[str, Any]:
    """A column as a plain dict; ``type`` is a Spark SQL type such as ``DECIMAL(10, 2)``.

    ``default`` is a literal: ``"0"``, ``"'new'"``, ``"DATE '2026-01-31'"``.
    """
    found = {"name": name, "type": type, "nullable": nullable, "comment": comment}
    return found if default is None else {**found, "default": default}


class CreateTableOperator(SqlOperator, TableOperator):
    """Creates a table, and its database, unless an identical table exists.

    If a different table exists, the task fails with TABLE_DIFFERS, which lists the differences, and
    is not retried. No asset event is sent: creating a table adds no data. Give the table as
    ``sql``, or as the parameters ``target``, ``columns`` and others. Guide:
    docs/operators/create_table.md.

    :param sql: CREATE TABLE as SQL text, or the path of a ``.sql`` file
    :param database: the database of a table that ``sql`` names without a database
    :param target: the table, ``database.table``
    :param columns: ``column(…)`` for each column, or the same as dicts
    :param like: in place of columns and keys: the table that has them, ``database.table``; or in
        place of columns: ``file_source(…)``, ``sql_source(…)``
    :param partition_keys: columns that partition the table; where the format has them also
        transforms of columns: ``day(ts)``, ``bucket(16, id)``
    :param primary_key: names of the key columns, or of identifier fields
    :param table_options: options of the table format
    :param comment: the table's comment
    :param keep_existing: true: leave an existing table alone, whatever it is
    """

    template_fields: Sequence[str] = (
        *TableOperator.template_fields,
        "sql",
        "database",
        "columns",
        "like",
        "partition_keys",
        "primary_key",
        "table_options",
        "comment",
        "keep_existing",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **TableOperator.template_fields_renderers,
        "sql": "sql",
        "columns": "json",
        "like": "json",
        "table_options": "json",
    }
    emits_asset_event = False

    def __init__(
        self,
        *,
        sql: str | None = None,
        database: str | None = None,
        columns: Sequence[Mapping[str, Any]] | None = None,
        like: str | Mapping[str, Any] | None = None,
        partition_keys: Sequence[str] = (),
        primary_key: Sequence[str] = (),
        table_options: Mapping[str, str] | None = None,
        comment: str | None = None,
        keep_existing: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.database = database
        self.columns = columns
        self.like = like
        self.partition_keys = partition_keys
        self.primary_key = primary_key
        self.table_options = {} if table_options is None else table_options
        self.comment = comment
        self.keep_existing = keep_existing
        if not is_template(keep_existing):
            self._keeps_existing()
        self.check_parameters()

    def needs_session(self) -> bool:
        """Only to find the columns of a source: the table library creates the table."""
        return isinstance(self.like, Mapping)

    def request_sources(self) -> tuple[Source, ...]:
        """The source whose columns the table gets, preceded by those that its query reads."""
        return to_sources(self.like, "like") if isinstance(self.like, Mapping) else ()

    def statement(self) -> CreateTableSpec:
        """The statement of the rendered parameters."""
        spec = _spec(self._document()) if self.sql is None else self._parsed()[1]
        return replace(spec, keep_existing=self._keeps_existing())

    def target_table(self) -> TableName:
        """The table of the rendered parameters."""
        return super().target_table() if self.sql is None else self._parsed()[0]

    def statement_text(self) -> str | None:
        """``sql`` of the rendered parameters."""
        return self.sql

    def _keeps_existing(self) -> bool:
        return flag("keep_existing", self.keep_existing)

    def _parsed(self) -> tuple[TableName, CreateTableSpec]:
        if not isinstance(self.sql, str):
            raise invalid("sql", "expected text")
        with of_parameter(self.sql_label()):
            return parse_create_table(self.sql, self.database)

    def _document(self) -> dict[str, Any]:
        return {
            "kind": CreateTableSpec.kind,
            "columns": plain(self.columns or ()),
            **self._like(),
            "partition_keys": plain(self.partition_keys),
            "primary_key": plain(self.primary_key),
            "table_options": plain(self.table_options),
            "comment": self.comment,
        }

    def _like(self) -> dict[str, Any]:
        if self.like is None:
            return {}
        if is_template(self.like):
            return {"like": self.like}
        if isinstance(self.like, Mapping):
            return {"source": MERGE_SOURCE}
        table = parse_table_name(self.like, "like")
        if table.catalog:
            raise invalid("like", f"{self.like!r} names a catalog", "Write database.table.")
        return {"like": quoted_name(table)}

    def check_parameters(self) -> None:
        """Check what has no template when the DAG is parsed."""
        self.drop_default_text(_PARTS)
        if self.sql is None:
            self._require_parts()
            document = self._document()
            if isinstance(self.like, Mapping) and not chosen_later(self.like):
                to_sources(with_placeholders(self.like), "like")
            if not has_template(document):
                _spec(document)
            return
        for name in _PARTS:
            if getattr(self, name):
                self.refuse(name, "cannot be combined with sql", "Write it in the SQL text.")
        if not (self.reads_later() or is_template(self.database)):
            self._parsed()

    def _require_parts(self) -> None:
        if self.target is None:
            raise invalid("target", "missing", "Give it, or the whole statement as sql.")
        if self.columns is None and self.like is None:
            raise invalid("columns", "missing", "Give it, or like, or the whole statement as sql.")
        if self.columns is not None and self.like is not None:
            self.refuse("columns", "cannot be combined with like", "Leave it out.")
        if self.database is not None:
            self.refuse("database", "belongs to sql", "Write it in target: database.table.")


def _spec(document: dict[str, Any]) -> CreateTableSpec:
    # Places in the document, without a root, are the names of parameters.
    return codec.decode(CreateTableSpec, document, "")
