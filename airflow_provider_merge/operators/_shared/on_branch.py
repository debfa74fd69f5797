"""What a group of tasks reads and writes on a branch, until it is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.table_names import parse_table_name
from spark_jobs.contract.inserts import PartitionStatement
from spark_jobs.contract.request import JobRequest, Source, TableName, TableSource
from spark_jobs.contract.statements import RowStatement, created_table
from spark_jobs.contract.table_name import BRANCH_MARK


@dataclass(frozen=True, slots=True)
class OnBranch:
    """``tables`` are read and written on ``branch``, wherever a request names them."""

    branch: str
    tables: tuple[TableName, ...]

    @classmethod
    def of(cls, branch: Any, tables: Sequence[str]) -> OnBranch:
        """From rendered parameters.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        if not isinstance(branch, str) or not branch.strip():
            raise invalid("branch", "is not a name")
        return cls(branch, tuple(parse_table_name(each, "targets") for each in tables))

    def table(self, name: TableName) -> TableName:
        """The branch of a table, if it has one; else the table."""
        if not self._has(name):
            return name
        return replace(name, table=f"{name.without_branch}{BRANCH_MARK}{self.branch}")

    def read(self, sources: Sequence[Source]) -> tuple[Source, ...]:
        """The sources, with branches in place of tables."""
        return tuple(
            replace(source, table=self.table(source.table))
            if isinstance(source, TableSource) and source.connection is None
            else source
            for source in sources
        )

    def changed(self, request: JobRequest) -> JobRequest:
        """The request of a statement, on the branch.

        Raises:
            RequestError: REQUEST_INVALID: it changes another table, or more than rows.
        """
        statement = request.statement
        is_new = created_table(statement) is not None
        if is_new or not isinstance(statement, RowStatement | PartitionStatement):
            told = "CREATE TABLE" if is_new else statement.kind.upper().replace("_", " ")
            raise invalid(
                "statements",
                f"{told} of {request.target} cannot be done on a branch",
                "Run it in a task before the group; there may be statements that change rows.",
            )
        if not self._has(request.table):
            raise invalid(
                "targets",
                f"{request.target} is not among them, but a statement changes it",
                "List every table that the statements change.",
            )
        target = self.table(request.table)
        return replace(request, target=target, sources=self.read(request.sources))

    def _has(self, name: TableName) -> bool:
        return any(each.may_be(name) for each in self.tables)
