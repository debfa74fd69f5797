"""``AlterTableOperator``: change the definition of a table, all of it or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.dry_run_of import DryRunOperator
from airflow_provider_merge.operators._shared.sql_parameter import SqlOperator, of_parameter
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators._shared.values import plain
from airflow_provider_merge.secret_names import refuse_secrets
from airflow_provider_merge.sql.alter_table import parse_alter_table
from airflow_provider_merge.templates import has_template, is_template
from spark_jobs.contract import codec
from spark_jobs.contract.alter_table import AlterTableSpec, SetProperties
from spark_jobs.contract.request import TableName

_PARTS = ("target", "changes")


class AlterTableOperator(SqlOperator, DryRunOperator):
    """Changes columns, properties, partition fields or the sort order of a table.

    All changes of a task are made at once, or none; a retry finds what an earlier try has done. No
    asset event is sent: the rows stay as they are. Give the changes as ``sql``, or as ``target``
    and ``changes``. Guide: docs/operators/alter_table.md.

    :param sql: ALTER TABLE as SQL text, or the path of a ``.sql`` file
    :param database: the database of a table that ``sql`` names without a database
    :param target: the table, ``database.table``
    :param changes: ``add_column(…)`` and other functions of ``operators.table_changes``, or the
        same as dicts, which are made one after the other
    :param dry_run: true: report each change, old and new, and make none
    """

    template_fields: Sequence[str] = (*DryRunOperator.template_fields, "sql", "database", "changes")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **TableOperator.template_fields_renderers,
        "sql": "sql",
        "changes": "json",
    }
    emits_asset_event = False

    def __init__(
        self,
        *,
        sql: str | None = None,
        database: str | None = None,
        changes: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.database = database
        self.changes = changes
        self.check_parameters()

    def needs_session(self) -> bool:
        """Never: the table library alters it."""
        return False

    def statement(self) -> AlterTableSpec:
        """The statement of the rendered parameters."""
        if self.sql is not None:
            return self._parsed()[1]
        return _spec(self._document())

    def target_table(self) -> TableName:
        """The table of the rendered parameters."""
        return super().target_table() if self.sql is None else self._parsed()[0]

    def statement_text(self) -> str | None:
        """``sql`` of the rendered parameters."""
        return self.sql

    def _parsed(self) -> tuple[TableName, AlterTableSpec]:
        if not isinstance(self.sql, str):
            raise invalid("sql", "expected text")
        with of_parameter(self.sql_label()):
            target, spec = parse_alter_table(self.sql, self.database)
        _refuse_secrets("sql", spec)
        return target, spec

    def _document(self) -> dict[str, Any]:
        if not isinstance(self.changes, list | tuple):
            raise invalid("changes", "expected a list of changes", "Write [add_column(...)].")
        return {"kind": AlterTableSpec.kind, "changes": plain(self.changes)}

    def check_parameters(self) -> None:
        """Check what has no template when the DAG is parsed."""
        self.drop_default_text(_PARTS)
        if self.sql is None:
            self._require_parts()
            if not has_template(self.changes):
                _spec(self._document())
            return
        for name in _PARTS:
            if getattr(self, name):
                self.refuse(
                    name, "cannot be combined with sql", "Leave out sql, or target and changes."
                )
        if not (self.reads_later() or is_template(self.database)):
            self._parsed()

    def _require_parts(self) -> None:
        for name in _PARTS:
            if getattr(self, name) is None:
                raise invalid(name, "missing", "Give it, or the whole statement as sql.")
        if self.database is not None:
            self.refuse("database", "belongs to sql", "Write it in target: database.table.")


def _spec(document: dict[str, Any]) -> AlterTableSpec:
    # Places in the document, without a root, are the names of parameters.
    spec = codec.decode(AlterTableSpec, document, "")
    _refuse_secrets("changes", spec)
    return spec


def _refuse_secrets(parameter: str, spec: AlterTableSpec) -> None:
    for change in spec.changes:
        if isinstance(change, SetProperties):
            refuse_secrets(
                parameter,
                change.properties,
                "Give it to the catalog connection: everybody reads a table's properties.",
            )
