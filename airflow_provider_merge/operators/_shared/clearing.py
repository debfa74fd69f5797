"""The base of TRUNCATE and DROP PARTITION: partitions deleted without reading them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.operators._shared.guards import DELETED_ROWS, DeletedRowGuards
from airflow_provider_merge.operators._shared.statement import StatementOperator
from airflow_provider_merge.operators._shared.values import flag
from airflow_provider_merge.templates import has_template
from spark_jobs.contract.inserts import ClearingStatement
from spark_jobs.contract.plain_constants import has_plain_constants
from spark_jobs.contract.request import Source
from spark_jobs.errors import JobError


class ClearingOperator(DeletedRowGuards, StatementOperator):
    """A statement without a source, which needs Spark only for values that are not plain.

    :param last_writer_wins: also delete what others commit to the same partitions meanwhile,
        instead of running again after the conflict
    """

    template_fields: Sequence[str] = (
        *StatementOperator.template_fields,
        *DELETED_ROWS,
        "last_writer_wins",
    )

    def __init__(self, *, last_writer_wins: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.last_writer_wins = last_writer_wins
        self._needs_session: bool | None = None

    def statement(self) -> ClearingStatement:
        """The statement of the rendered parameters."""
        spec = cast("ClearingStatement", super().statement())
        return replace(spec, last_writer_wins=flag("last_writer_wins", self.last_writer_wins))

    def needs_session(self) -> bool:
        """Whether rows are read, as for checks, or a partition's value is not plain.

        The table's columns are read only once.
        """
        if self._needs_session is None:
            reads_rows = bool(self.checks) or self.audit_table is not None
            reads_rows = reads_rows or self.previewed_rows() is not None
            self._needs_session = reads_rows or not self._has_plain_constants()
        return self._needs_session

    def built_sources(self) -> tuple[Source, ...]:
        """None: no row is read."""
        return ()

    def check_parts(self) -> tuple[Source, ...]:
        """Check what has no template; the statement reads nothing."""
        if self.sources is not None:
            self.refuse("sources", "is of no use here: no row is read", "Leave it out.")
        own = set(self.template_fields) - {*StatementOperator.template_fields, *DELETED_ROWS}
        if not has_template([getattr(self, name) for name in own]):
            self.built_statement()
        return ()

    def _has_plain_constants(self) -> bool:
        statement, target = self.statement(), self.target_table()
        try:
            return has_plain_constants(
                statement, lambda: catalog_hook(self.catalog_conn_id).definition(target).columns
            )
        except (JobError, OSError) as error:
            self.log.info("The job starts Spark, as %s cannot be read from here: %s", target, error)
            return False
