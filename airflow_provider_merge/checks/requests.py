"""Checks a request against the catalog's metadata, before anything is started for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from airflow_provider_merge.checks.derived_sources import (
    check_versions,
    derived_relation,
    require_kept,
)
from airflow_provider_merge.checks.files import file_columns, require_files
from airflow_provider_merge.checks.former_states import former_columns
from airflow_provider_merge.checks.queries import check_query, check_row_checks, query_columns
from airflow_provider_merge.checks.relations import Relation
from airflow_provider_merge.checks.side_tables import nullable_types, require_late_columns
from airflow_provider_merge.checks.statements import StatementCheck
from airflow_provider_merge.hooks.source_connections import source_hook
from spark_jobs.contract.checks import did_you_mean
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.inserts import PartitionSpec, PartitionStatement
from spark_jobs.contract.request import Source, SqlSource, TableName, TableSource
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.contract.side_outputs import AUDIT_COLUMNS, require_audit_columns, table_text
from spark_jobs.contract.source_names import called, source_text
from spark_jobs.contract.sources import DerivedSource, OutsideSource
from spark_jobs.contract.statements import RowStatement
from spark_jobs.contract.table_versions import CHANGE_TYPE, SNAPSHOT_ID, TableVersion
from spark_jobs.errors import CatalogError, ErrorCode, JobError

if TYPE_CHECKING:
    from airflow_provider_merge.hooks.catalog import CatalogHook
    from airflow_provider_merge.metadata.definition import TableDefinition
    from spark_jobs.contract.guards import Guards

log = logging.getLogger(__name__)

_NOT_FOUND: Final = (ErrorCode.TABLE_NOT_FOUND, ErrorCode.WAREHOUSE_NOT_FOUND)
# Tables that are looked through, and names that are shown, for one that is not there.
_MOST_NAMES: Final = 500
_SHOWN: Final = 20
_NO_STATE: Final = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.TAG_NOT_FOUND)
# A driver elsewhere may have another user, or a role of its own.
_DENIED: Final = ErrorCode.WAREHOUSE_ACCESS_DENIED


@dataclass(frozen=True, slots=True)
class MetadataCheck:
    """Checks what metadata tells of statements: tables, local files, columns and types.

    ``shares_files``: the driver runs here, and local paths mean the same to it. ``made``: tables
    that do not have to exist yet. What cannot be read from here is left to the job.
    """

    hook: CatalogHook
    shares_files: bool
    made: Collection[TableName] = ()
    _read: dict[TableName, TableDefinition | None] = field(default_factory=dict, init=False)
    _others: dict[str, MetadataCheck] = field(default_factory=dict, init=False)

    def require_valid(
        self,
        target: TableName,
        spec: RowStatement | PartitionStatement | CompactSpec,
        sources: Sequence[Source],
        *,
        widens: bool = False,
        checks: Sequence[RowCheck] = (),
        expected: Sequence[PartitionSpec] | None = None,
    ) -> None:
        """Check one statement, and its ``checks`` of rows; ``widens``: it has type widening.

        ``expected``: the partitions that it may change.

        Raises:
            CatalogError: TABLE_NOT_FOUND, WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED,
                SOURCE_NOT_FOUND.
            AnalysisError: COLUMN_NOT_FOUND, AMBIGUOUS_REFERENCE, TYPE_MISMATCH,
                EXPRESSION_INVALID.
            NotSupportedError: a new column has a reserved name, a key would be widened, or no job
                does this to a table with such properties.
        """
        definition = self._definition(target)
        if definition is not None:
            if isinstance(spec, CompactSpec):
                definition.refuse_uncompactable(spec)
            definition.refuse_target()
        views = self.require_sources(sources)
        by_name = {source.name: views[source.name.lower()] for source in sources}
        relation = Relation("", str(target), None if definition is None else definition.columns)
        for source in sources:
            if isinstance(source, Scd2Source):
                check_versions(source, relation, views[source.source.lower()])
        keys = None if definition is None else definition.partition_columns
        fixed = () if definition is None or not widens else definition.key_columns
        require_kept(spec, sources, relation)
        check = StatementCheck(relation, by_name, keys, self.hook.is_reserved, fixed)
        check.statement(spec)
        check.expected(expected)
        # What a source adds to the columns is not known here.
        changed = None if getattr(spec, "schema_evolution", False) else relation.columns
        check_row_checks(checks, changed, views)

    def require_sources(self, sources: Sequence[Source]) -> Mapping[str, Relation]:
        """Check what is read; the sources by lower-case name. Raises as ``require_valid``."""
        views: dict[str, Relation] = {}
        for source in sources:
            views[source.name.lower()] = self._relation(source, views)
        return views

    def require_side_tables(
        self, guards: Guards, sources: Sequence[Source] = (), source: str | None = None
    ) -> None:
        """Check that tables that get rows beside the target are there, and take them.

        ``source``: the name of the one whose rows the statement merges or inserts.

        Raises:
            CatalogError: TABLE_NOT_FOUND, with the statement that makes it, if that is known.
            AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH.
            NotSupportedError: no job changes rows of such a table.
        """
        if guards.quarantine_table is not None:
            name = guards.quarantine_table
            with _of_parameter("quarantine_table", lambda: self._late_table(name, sources, source)):
                late = self._definition(TableName.parse(name))
            if late is not None:
                late.refuse_target()
                relation = self.require_sources(sources).get((source or "").lower())
                known = None if relation is None else relation.columns
                require_late_columns(name, late.columns, known or {})
        if guards.audit_table is None:
            return
        text = table_text(guards.audit_table, AUDIT_COLUMNS)
        with _of_parameter("audit_table", lambda: f"Make it: {text}"):
            definition = self._definition(TableName.parse(guards.audit_table))
        if definition is not None:
            definition.refuse_target()
            require_audit_columns(guards.audit_table, nullable_types(definition.columns))

    def _late_table(self, name: str, sources: Sequence[Source], source: str | None) -> str:
        relation = self.require_sources(sources).get((source or "").lower())
        columns = None if relation is None else relation.columns
        if not columns or not all(columns.values()):
            return "Make it, with the columns of the source, each of which can be NULL."
        return f"Make it: {table_text(name, columns)}"

    def _relation(self, source: Source, views: Mapping[str, Relation]) -> Relation:
        label = _label(source)
        if isinstance(source, TableSource):
            return self._of(source).table_relation(source)
        if isinstance(source, DerivedSource):
            return derived_relation(source, label, views[source.source.lower()])
        if isinstance(source, SqlSource):
            check_query(source.query, views, f"query of {label}")
            return Relation(source.name, label, query_columns(source.query, views))
        if isinstance(source, OutsideSource) or not self.shares_files:
            return Relation(source.name, label, None)
        require_files(source, label)
        return Relation(source.name, label, file_columns(source))

    def table_relation(self, source: TableSource) -> Relation:
        """What is known of a table of this catalog. Raises as ``require_valid``."""
        label, definition = _label(source), self._definition(source.table)
        if definition is None:
            return Relation(source.name, label, None)
        definition.refuse_source()
        if source.at is not None:
            return Relation(source.name, label, self._former_columns(source, source.at))
        if source.changes is not None:
            told = {CHANGE_TYPE: "STRING", SNAPSHOT_ID: "BIGINT"}
            return Relation(source.name, label, {**definition.columns, **told})
        return Relation(source.name, label, definition.columns)

    def _of(self, source: TableSource) -> MetadataCheck:
        """The checks in the catalog of a source."""
        name = source.connection
        if name is None:
            return self
        if name not in self._others:
            hook = source_hook(source)
            assert hook is not None  # noqa: S101 - it names a connection
            self._others[name] = MetadataCheck(hook, self.shares_files)
        return self._others[name]

    def _former_columns(self, source: TableSource, at: TableVersion) -> Mapping[str, str] | None:
        """The columns of a table's former state, which must be there, if it can be told."""
        try:
            return former_columns(self.hook.table(source.table), at)
        except JobError as error:
            if error.code in _NO_STATE:
                raise error.within(called(source.name)) from None
            log.info("%s is not checked before the job starts: %s", source.table, error)
        except OSError as error:
            log.info("%s is not checked before the job starts: %s", source.table, error)
        return None

    def _definition(self, table: TableName) -> TableDefinition | None:
        if table not in self._read:
            self._read[table] = self._read_definition(table)
        return self._read[table]

    def _read_definition(self, table: TableName) -> TableDefinition | None:
        if any(table.may_be(each) for each in self.made):
            return None
        try:
            return self.hook.definition(table)
        except JobError as error:
            if error.code is ErrorCode.TABLE_NOT_FOUND:
                raise self._with_names(error, table) from None
            if error.code in _NOT_FOUND or (self.shares_files and error.code is _DENIED):
                raise
            log.info("%s is not checked before the job starts: %s", table, error)
        except OSError as error:
            log.info("%s is not checked before the job starts: %s", table, error)
        return None

    def _with_names(self, error: JobError, table: TableName) -> JobError:
        """The error with what the catalog has, if it tells."""
        try:
            names = self.hook.table_names(_MOST_NAMES)
        except (JobError, OSError):
            return error
        of_database = [str(each) for each in names if each.database == table.database]
        databases = {each.database for each in names}
        what = f"Tables of {table.database}" if of_database else "Databases that have tables"
        there = sorted(of_database or databases)
        more = ", ..." if len(there) > _SHOWN or len(names) == _MOST_NAMES else ""
        guess = did_you_mean(str(table), of_database or map(str, names))
        remedy = f"{guess} {error.remedy} {what}: {', '.join(there[:_SHOWN]) or 'none'}{more}."
        return CatalogError(error.code, error.problem, remedy.strip(), error.places, error.name)


@contextmanager
def _of_parameter(name: str, remedy: Callable[[], str]) -> Iterator[None]:
    try:
        yield
    except JobError as error:
        if error.code is not ErrorCode.TABLE_NOT_FOUND:
            raise
        raise CatalogError(error.code, f"{name}: {error.problem}", remedy()) from None


def _label(source: Source) -> str:
    """What people call a source."""
    return source.placed_table if isinstance(source, TableSource) else source_text(source)
