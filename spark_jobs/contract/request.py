"""JobRequest v1: the one document that Airflow hands to the job. It never holds a secret."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal, get_args

from spark_jobs.contract import codec
from spark_jobs.contract.approval import Ticket, require_approvable
from spark_jobs.contract.catalogs import CatalogSpec
from spark_jobs.contract.checks import require, require_among
from spark_jobs.contract.digests import digest_of, part_digests
from spark_jobs.contract.guards import Guards
from spark_jobs.contract.incremental import require_incremental, require_mark_of
from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec, PartitionStatement
from spark_jobs.contract.maintenance import CreateBranchSpec, CreateTagSpec
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.scd2_merge import require_scd2
from spark_jobs.contract.sources import (
    DerivedSource,
    FileSource,
    Source,
    SqlSource,
    TableSource,
)
from spark_jobs.contract.statements import (
    CreateTableSpec,
    MergeSpec,
    RowStatement,
    Statement,
    created_table,
)
from spark_jobs.contract.table_name import TableName
from spark_jobs.contract.text_limits import TextLimits
from spark_jobs.contract.undo import UndoRunSpec

__all__ = [
    "CatalogSpec",
    "FileSource",
    "JobRequest",
    "Origin",
    "Source",
    "SqlSource",
    "TableName",
    "TableSource",
]

VERSION = 1

AfterEndedTry = Literal["fail", "skip", "run"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_WITH_SOURCE = MergeSpec | InsertIntoSpec | InsertOverwriteSpec | QuerySpec | CreateTableSpec


@dataclass(frozen=True, slots=True)
class Origin:
    """The task that asks. The snapshot's properties show it; it does not affect the rows.

    ``statement``: the statement's name, if the task has several. ``dry_run_of``: the task that a
    dry run foretells, whose marks it goes by; empty: its own.
    """

    dag_id: str = ""
    run_id: str = ""
    task_id: str = ""
    map_index: int = -1
    try_number: int = 1
    retries: int = 0
    statement: str = ""
    dry_run_of: str = ""

    @property
    def is_retry(self) -> bool:
        """Whether the task was tried before."""
        return self.try_number > 1


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Everything that a job needs to know, except secrets.

    ``target`` is the table that the statement changes; None for a query, which changes none.
    ``operation_id`` is the same for all tries of one piece of work: the snapshot records it, and a
    retry that finds it there does not apply the statement again. ``dry_run``: everything but the
    commit is done, and only the counts are kept. ``plan_only``: of a dry run, nothing is written
    either, and the result has bounds of what the statement would do. ``after_ended_try``: what to
    do if an earlier operation of the task committed although its task had been ended: fail, skip
    the statement and take that operation's result, or run the statement again. ``text_limits``:
    what its texts may.
    ``guards``: what must hold of the changes, or nothing is published. ``approved``: the dry run
    that somebody has approved; if the work is not the same any more, nothing is done.
    """

    operation_id: str
    target: TableName | None
    catalog: CatalogSpec
    statement: Statement
    sources: tuple[Source, ...] = ()
    options: JobOptions = field(default_factory=JobOptions)
    origin: Origin = field(default_factory=Origin)
    dry_run: bool = False
    plan_only: bool = False
    after_ended_try: AfterEndedTry = "fail"
    text_limits: TextLimits = field(default_factory=TextLimits)
    guards: Guards | None = None
    approved: Ticket | None = None
    version: int = VERSION

    def __post_init__(self) -> None:
        require(
            _OPERATION_ID.fullmatch(self.operation_id) is not None,
            "operation_id",
            f"{self.operation_id!r} is not an id of letters, digits, _ and -",
        )
        choices = get_args(AfterEndedTry)
        require_among(self.after_ended_try, choices, "after_ended_try")
        names = [source.name for source in self.sources]
        for name in names:
            require(
                _NAME.fullmatch(name) is not None,
                "sources",
                f"{name!r} cannot name a source",
                "Use letters, digits and _, not starting with a digit.",
            )
            lowered = [each.lower() for each in names]
            require(lowered.count(name.lower()) == 1, "sources", f"{name} occurs more than once")
        for index, source in enumerate(self.sources):
            is_behind = not isinstance(source, DerivedSource) or source.source in names[:index]
            require(is_behind, f"sources.{source.name}", "stands before the source that it reads")
        made = created_table(self.statement)
        require(
            not (self.dry_run and made is not None),
            "dry_run",
            "CREATE TABLE has none",
            "Leave dry_run out: an equal table that exists is left alone.",
        )
        require(
            not (self.dry_run and isinstance(self.statement, CreateTagSpec | CreateBranchSpec)),
            "dry_run",
            f"a new {'tag' if isinstance(self.statement, CreateTagSpec) else 'branch'} has none",
            "Leave dry_run out: it removes nothing.",
        )
        if isinstance(self.statement, CreateTableSpec):
            like = self.statement.like
            is_own = like and self.target and TableName.parse(like).may_be(self.target)
            require(not is_own, "statement.like", "names the table itself")
        if made is not None:
            named, connector = made.format, self.catalog.connector
            require(
                named is None or named == connector,
                "statement.format",
                f"the statement asks for a table of {named}, but the tables of "
                f"the catalog are of {connector}",
                f"Leave USING out, or use the connection of a catalog of {named}.",
            )
        self._check_query()
        require_incremental(self.statement, self.sources, self.target, self.catalog)
        require_mark_of(self.origin.dry_run_of, self.sources, dry_run=self.dry_run)
        require_scd2(self.statement, self.sources, self.options, self.guards)
        if self.guards is not None:
            folded = "" if self.target is None else self.target.folded
            self.guards.require_meant(self.statement.kind, names, folded)
            require(
                made is None,
                "guards",
                "a statement that makes its table has none",
                "Make the table first, and give the guards to an INSERT.",
            )
        require(
            not self.plan_only or (self.dry_run and self._writes_rows),
            "plan_only",
            f"{self.statement.kind} has no plan, or this is no dry run",
            "Leave it out, or set dry_run.",
        )
        require(
            not (self.dry_run and self.approved is not None),
            "approved",
            "a dry run does nothing that could be approved",
            "Leave approved or dry_run out.",
        )
        if self.approved is not None:
            require_approvable(self.sources)
        require(
            self.approved is None or self._writes_rows or isinstance(self.statement, UndoRunSpec),
            "approved",
            f"{self.statement.kind} has no dry run to approve",
            "Leave approved out.",
        )
        require(
            not self.options.type_widening or getattr(self.statement, "schema_evolution", False),
            "type_widening",
            "needs schema_evolution",
            "Set schema_evolution too, or leave type_widening out.",
        )
        if isinstance(self.statement, _WITH_SOURCE) and self.statement.source is not None:
            require(
                self.statement.source in names,
                "statement.source",
                f"{self.statement.source!r} is not among the sources {names}",
            )

    @property
    def _writes_rows(self) -> bool:
        is_row_statement = isinstance(self.statement, RowStatement | PartitionStatement)
        return is_row_statement and created_table(self.statement) is None

    def _check_query(self) -> None:
        is_query = isinstance(self.statement, QuerySpec)
        require(
            is_query == (self.target is None),
            "target",
            f"a query has none, every other statement one; this is {self.statement.kind}",
        )
        require(
            not (self.dry_run and is_query),
            "dry_run",
            "a query has none",
            "Leave dry_run out: a query changes nothing.",
        )

    @property
    def catalogs(self) -> list[CatalogSpec]:
        """The catalog of the target, and those of sources that are in others."""
        others = (getattr(each, "catalog", None) for each in self.sources)
        return [self.catalog, *(each for each in others if each is not None)]

    @property
    def table(self) -> TableName:
        """The target of a statement that is no query."""
        assert self.target is not None  # noqa: S101 - checked above for these statements
        return self.target

    def to_json(self) -> str:
        """The request as a JSON document; keys in declaration order."""
        return json.dumps(codec.encode(self), indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> JobRequest:
        """The request in a JSON document.

        Raises:
            RequestError: REQUEST_VERSION_UNKNOWN, or REQUEST_INVALID with the JSON path.
        """
        return codec.decode(cls, codec.load_versioned(text, VERSION))

    def digest(self) -> str:
        """SHA-256 (hex) of what the statement means; the same for every try of the same work.

        It covers target, catalog, statement, sources, options and whether it is a dry run; not the
        operation id, the origin (which has the try number), ``after_ended_try``, limits, the
        workspace, or the version.
        """
        return digest_of(codec.encode(self))

    def part_digests(self) -> dict[str, str]:
        """Digests as ``digest`` has them, of each part of a request that is no dry run."""
        return part_digests(codec.encode(self))
