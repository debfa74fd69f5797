"""The parameters ``checks`` and ``audit_table``, about the rows that a statement changes.

``checks`` say what must hold of them; the audit table gets a row for each of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.approval import ApprovableOperator
from airflow_provider_merge.operators._shared.column_checks import COLUMN, ROW_COUNT, column_checks
from airflow_provider_merge.operators._shared.sql_parameter import of_parameter
from airflow_provider_merge.operators._shared.values import side_table, whole_number
from airflow_provider_merge.sql.row_checks import checked_query
from airflow_provider_merge.templates import has_template, is_template
from spark_jobs.contract.checks import unknown_field
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.request import Source
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.contract.row_preview import require_preview_rows

_AUDIT_TABLE: Final = "audit_table"
_CHECKS: Final = "checks"
_PREVIEW: Final = "preview_rows"
_REMEDY: Final = (
    "Write SQL that returns the wrong rows, {'name': ..., 'sql': ...}, or a check of a column."
)


class AuditedOperator(ApprovableOperator):
    """Keeps what a statement changes, row by row.

    :param audit_table: ``database.table`` on the same connection, which gets a row for each changed
        row: who changed it, and its old and new values
    """

    template_fields: Sequence[str] = (*ApprovableOperator.template_fields, _AUDIT_TABLE)

    def __init__(self, *, audit_table: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.audit_table = audit_table
        if audit_table is not None and not is_template(audit_table):
            side_table(_AUDIT_TABLE, audit_table)

    def guards(self) -> Guards | None:
        """With the audit table."""
        guards = super().guards()
        if self.audit_table is None:
            return guards
        return replace(guards or Guards(), audit_table=side_table(_AUDIT_TABLE, self.audit_table))


class CheckedOperator(AuditedOperator):
    """Publishes what a statement changes only if its checks of rows find no wrong row.

    :param checks: queries that must return no row, over ``changes``, ``new_rows``, ``target`` and
        the statement's sources: texts, ``{"name": …, "sql": …}``, or checks of a column such as
        ``{"column": "id", "not_null": True}``
    :param preview_rows: with ``dry_run``: so many of the rows that would be inserted, updated and
        deleted, each, are kept for the task's page, old beside new, for who may see rows of the
        connection; at most 100, by default none
    """

    template_fields: Sequence[str] = (*AuditedOperator.template_fields, _CHECKS, _PREVIEW)

    def __init__(
        self,
        *,
        checks: Sequence[Any] | None = None,
        preview_rows: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.checks = checks
        self.preview_rows = preview_rows
        if not has_template([preview_rows, self.dry_run]):
            self.previewed_rows()
        if checks is not None and not is_template(checks):
            known = [each for each in self._written() if not has_template(each[1])]
            list(_row_checks(known, None))

    def previewed_rows(self) -> int | None:
        """How many rows of each operation a dry run keeps, from rendered parameters; None: none.

        Raises:
            RequestError: REQUEST_INVALID.
        """
        rows = whole_number(_PREVIEW, self.preview_rows)
        require_preview_rows(rows)
        if rows and self.plans_only():
            remedy = "Set dry_run=True, or leave preview_rows out."
            raise invalid(_PREVIEW, 'a dry run with "plan" changes no rows', remedy)
        return rows if rows and self.is_dry_run() else None

    @abstractmethod
    def request_sources(self) -> tuple[Source, ...]:
        """What the statement reads, from rendered parameters."""

    def guards(self) -> Guards | None:
        """With the checks of rows."""
        found, checks = super().guards(), self.row_checks()
        return replace(found or Guards(), checks=checks) if checks else found

    def row_checks(self) -> tuple[RowCheck, ...]:
        """The checks of rows, from rendered parameters.

        Raises:
            JobError: names the check, and line and column of its text.
        """
        if not self.checks:
            return ()
        names = [source.name for source in self.request_sources()]
        return tuple(_row_checks(self._written(), names))

    def check_texts(self) -> list[str]:
        """The texts of checks, which may name sources."""
        if not isinstance(self.checks, list | tuple):
            return []
        texts = (each.get("sql") if isinstance(each, Mapping) else each for each in self.checks)
        return [text for text in texts if isinstance(text, str)]

    def _written(self) -> Iterator[tuple[str, Any]]:
        """The checks, each with its place."""
        if not isinstance(self.checks, list | tuple):
            problem = f"expected a list of checks, found {type(self.checks).__name__}"
            raise invalid(_CHECKS, problem, _REMEDY)
        for index, each in enumerate(self.checks):
            yield f"{_CHECKS}[{index}]", each


def _row_checks(
    written: Iterable[tuple[str, Any]], source_names: Iterable[str] | None
) -> Iterator[RowCheck]:
    names = None if source_names is None else tuple(source_names)
    for number, (place, check) in enumerate(written, start=1):
        if isinstance(check, str):
            yield RowCheck(f"#{number}", _query(check, names, place))
        elif not isinstance(check, Mapping):
            raise invalid(place, f"expected SQL or a dict, found {type(check).__name__}", _REMEDY)
        elif COLUMN in check or ROW_COUNT in check:
            yield from column_checks(check, place)
        else:
            yield _named(check, names, place)


def _named(written: Mapping[str, Any], names: Iterable[str] | None, place: str) -> RowCheck:
    for field in ("name", "sql"):
        if not isinstance(written.get(field), str) or not written[field].strip():
            raise invalid(f"{place}.{field}", "expected text", _REMEDY)
    for field in written:
        if field not in ("name", "sql"):
            raise unknown_field(f"{place}.{field}", field, ("name", "sql"))
    return RowCheck(written["name"], _query(written["sql"], names, f"{place}.sql"))


def _query(sql: str, names: Iterable[str] | None, place: str) -> str:
    if not sql.strip():
        raise invalid(place, "is empty", _REMEDY)
    with of_parameter(place):
        return checked_query(sql, names)
