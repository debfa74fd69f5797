"""The source of a MERGE that stores versions: evaluated once, on the target as it is pinned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.contract.source_names import called
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import DeleteAction, MergeCase, MergeSpec
from spark_jobs.engine.analysis.analyzer import analyze_merge
from spark_jobs.engine.analysis.scd2_roles import Roles, roles_of
from spark_jobs.engine.events.event_states import change_events, dated, told_values
from spark_jobs.engine.pruning.dynamic_filters import dynamic_filter
from spark_jobs.engine.pruning.needed_files import Pruning
from spark_jobs.engine.runtime.sql_text import named
from spark_jobs.engine.scd2.events import source_events, told_events
from spark_jobs.engine.scd2.history import PRESENT, History
from spark_jobs.engine.source.materialized import MaterializedSource, materialize
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi.writes import ReadSet, whole_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.engine.write.statement_run import SparkRun
    from spark_jobs.spi.evidence import DynamicFilter
    from spark_jobs.spi.tables import PlannedFile

_ALIASES: Final = ("t", "s")


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions that change, as rows of a source; no row of them is read yet.

    ``source_rows``: how many rows the statement's own source has. ``read_set``: the files whose
    change by others is a conflict, because they may have versions of the same things.
    """

    frame: DataFrame
    source_rows: int
    read_set: ReadSet


def changed_versions(
    run: SparkRun[Any], spec: Scd2Source, planned: Sequence[PlannedFile], broadcast_limit: int
) -> Versions:
    """Evaluate the rows of the source; then see what they change in the files ``planned``.

    ``broadcast_limit`` is in bytes.

    Raises:
        JobError: as the source; SOURCE_EMPTY: every key would be deleted.
    """
    opened = run.sources[spec.source]
    changes = change_events(run.sources.request.sources, spec)
    rows = dated(changes, spec, run.moment.fixed(opened.frame))
    roles = roles_of(spec, run.table, rows.schema, changes)
    rows = source_events(rows, spec, roles, changes)
    events = materialize(run.spark, rows, rows.columns, run.connector.storage, run.scratch)
    _require_rows(run, spec, events)
    reading = _Reading(run, spec, roles, events, planned, broadcast_limit)
    versions, read_set = reading.of_all() if spec.finds_absent else reading.of_events()
    new_events = told_events(events.frame, spec, roles)
    if changes is not None:
        new_events = told_values(new_events, versions, changes, roles)
    return Versions(History(spec, roles).changes(versions, new_events), events.row_count, read_set)


def _require_rows(run: SparkRun[Any], spec: Scd2Source, events: MaterializedSource) -> None:
    is_meant = run.guards.min_source_rows is not None
    if spec.finds_absent and not events.row_count and not is_meant:
        raise DataError(
            ErrorCode.SOURCE_EMPTY,
            f"{called(spec.source)} has no rows, so that hard_deletes={spec.hard_deletes!r} would "
            "delete every key.",
            "Look why it is empty. If that is what it says, set min_source_rows=0.",
        )


@dataclass(frozen=True, slots=True)
class _Reading:
    run: SparkRun[Any]
    spec: Scd2Source
    roles: Roles
    events: MaterializedSource
    planned: Sequence[PlannedFile]
    broadcast_limit: int

    def of_events(self) -> tuple[DataFrame, ReadSet]:
        """The versions of things that the source has, with the files that may have such."""
        pruning, keys = self._pruning()
        rows = self._rows(pruning.needed(self.planned).scanned, keys)
        found = rows.join(self._keys(), list(self.roles.keys), "left_semi")
        return found.selectExpr("*", named("TRUE", PRESENT)), pruning.touched

    def of_all(self) -> tuple[DataFrame, ReadSet]:
        """All versions of the table."""
        present = self._keys().selectExpr("*", named("TRUE", PRESENT))
        found = self._rows(self.planned, None).join(present, list(self.roles.keys), "left")
        columns = [quote(each) for each in self.roles.columns]
        is_present = named(f"coalesce({PRESENT}, FALSE)", PRESENT)
        return found.selectExpr(*columns, is_present), whole_table

    def _pruning(self) -> tuple[Pruning, DynamicFilter | None]:
        """The files that may have versions of the source's keys, as a MERGE by key finds them."""
        run, (target, source) = self.run, _ALIASES
        names = map(quote, self.roles.keys)
        on = " AND ".join(f"{target}.{name} = {source}.{name}" for name in names)
        spec = MergeSpec(self.spec.name, on, (MergeCase("matched", DeleteAction()),), *_ALIASES)
        fields = [StructField(name, self.roles.types[name]) for name in self.roles.keys]
        merge = analyze_merge(run.spark, spec, run.table, StructType(fields))
        keys = dynamic_filter(merge, self.events, self.broadcast_limit, run.moment)
        return Pruning(run.spark, merge, self.events, keys, run.moment), keys

    def _rows(self, files: Sequence[PlannedFile], keys: DynamicFilter | None) -> DataFrame:
        run, columns = self.run, self.roles.columns
        rows = run.connector.scan.read(run.spark, run.table, files, columns, keys)
        known = " AND ".join(f"{quote(name)} IS NOT NULL" for name in self.roles.keys)
        return rows.select(*map(quote, columns)).where(known)

    def _keys(self) -> DataFrame:
        """The keys of the source, each once."""
        keys = self.events.frame.select(*map(quote, self.roles.keys)).distinct()
        return F.broadcast(keys) if self.events.byte_size <= self.broadcast_limit else keys
