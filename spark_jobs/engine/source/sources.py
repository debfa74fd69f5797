"""All sources of a statement: opened for its analysis, read once for its rows. Driver only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.marks import mark_name
from spark_jobs.contract.operation_files import new_source_folder
from spark_jobs.contract.outside_sources import PythonSource
from spark_jobs.contract.request import FileSource, JobRequest, Source, SqlSource, TableSource
from spark_jobs.contract.result import SourceMetrics
from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.contract.sources import DerivedSource
from spark_jobs.engine.analysis.char_columns import padded
from spark_jobs.engine.analysis.scd2_roles import require_order_of_times, roles_of
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.events.event_states import change_events, dated
from spark_jobs.engine.events.skipped_events import skipped_events
from spark_jobs.engine.events.stored_keys import stored_keys
from spark_jobs.engine.marks.marks import Marks, NewMark
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.runtime.sql_text import named, null_of
from spark_jobs.engine.source.declared_columns import declared_lengths
from spark_jobs.engine.source.file_times import refuse_old_times
from spark_jobs.engine.source.landing import Landing, land
from spark_jobs.engine.source.materialized import MaterializedSource, spilled_frame
from spark_jobs.engine.source.new_files import ChosenFiles, new_files_of
from spark_jobs.engine.source.open_source import OpenSource, open_source
from spark_jobs.engine.source.outside_rows import kept_rows
from spark_jobs.engine.source.pinned_tables import FormerStates, PinnedTables
from spark_jobs.engine.source.python_rows import failing_finally
from spark_jobs.engine.source.quarantine import quarantine_of
from spark_jobs.engine.source.source_access import SourceAccess
from spark_jobs.engine.source.source_files import SourceFiles
from spark_jobs.engine.source.table_changes import ChosenChanges, chosen_changes
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle


@dataclass(slots=True)
class Sources(Mapping[str, OpenSource]):
    """The sources of ``request`` by name, with a temporary view of each.

    A query, or a source made of another one, sees the sources before it. Each table is pinned
    once, however many sources name it; ``target``, of a statement that has one, is pinned already.
    ``scratch`` is a folder for temporary files, relative to the workspace; ``moment`` is the
    statement's current time. ``metrics`` describe the file sources, once ``land`` has run.
    ``former`` keeps which former states the statement reads, over its attempts. ``access`` opens
    other catalogs. ``new_marks`` are those of incremental sources.
    """

    spark: SparkSession
    connector: Connector
    request: JobRequest
    target: TableHandle | None
    scratch: str
    progress: Progress
    moment: StatementTime
    metrics: dict[str, SourceMetrics] = field(default_factory=dict)
    former: FormerStates = field(default_factory=dict)
    access: SourceAccess = field(default_factory=SourceAccess)
    new_marks: list[NewMark] = field(default_factory=list)
    _opened: dict[str, OpenSource] = field(default_factory=dict)
    _pinned: PinnedTables = field(default_factory=PinnedTables)
    _chosen: dict[str, ChosenFiles] = field(default_factory=dict)
    _changes: dict[str, ChosenChanges] = field(default_factory=dict)

    def __getitem__(self, name: str) -> OpenSource:
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._opened)

    def __len__(self) -> int:
        return len(self._opened)

    @property
    def read_tables(self) -> list[tuple[str, TableHandle]]:
        """The tables that are read, pinned, each with its name and that of its connection."""
        tables = []
        for source in self.request.sources:
            opened, changes = self._opened.get(source.name), self._changes.get(source.name)
            table = changes.table if changes else opened and opened.table
            if isinstance(source, TableSource) and table:
                tables.append((source.placed_table, table))
        return tables

    @property
    def has_nothing_new(self) -> bool:
        """Whether no incremental source, of which there are some, has anything new."""
        have_new = [bool(each.files.files) for each in self._chosen.values()]
        have_new += [not e.is_empty for e in self._changes.values() if e.source.is_incremental]
        return bool(have_new) and not any(have_new)

    @property
    def chosen(self) -> Mapping[str, SourceFiles]:
        """The new files of incremental sources, by the names of the sources."""
        return {name: each.files for name, each in self._chosen.items()}

    @property
    def changes(self) -> Mapping[str, ChosenChanges]:
        """Which changes of tables are read, by the names of the sources."""
        return self._changes

    def choose(self) -> None:
        """Find out what is new in incremental sources, as of the target's pinned snapshot.

        Raises:
            JobError: as ``new_files_of`` and ``chosen_changes``.
        """
        marks = None if self.target is None else Marks(self.connector, self.target)
        for source in self.request.sources:
            name = mark_name(self.request.origin, source.name)
            chosen: ChosenFiles | ChosenChanges
            if marks and source.is_incremental and not self.request.dry_run:
                marks.settle(name)
            if isinstance(source, FileSource) and source.new_files is not None and marks:
                chosen = new_files_of(self.spark, source, self.connector, marks, name)
                self._chosen[source.name] = chosen
            elif isinstance(source, TableSource) and source.changes is not None:
                own = marks if source.is_incremental else None
                other = self.access.connector(source, self.connector)
                chosen = chosen_changes(self.spark, source, other, own, name)
                self._changes[source.name] = chosen
            else:
                continue
            self.metrics[source.name] = chosen.metrics
            if chosen.mark is not None:
                self.new_marks.append(chosen.mark)
            self.progress.say(chosen.told)

    def open(self) -> None:
        """Find the columns of all sources.

        Raises:
            JobError: as ``open_source``.
        """
        asked = (e for e in self.request.sources if isinstance(e, TableSource) and e.changes)
        if any(each.name not in self._changes for each in asked):
            self.choose()
        self._pinned = PinnedTables(former=self.former)
        if self.target is not None:
            self._pinned.keep(self.target)
        for source in self.request.sources:
            self._opened[source.name] = self._open(source)
            if isinstance(source, PythonSource):  # it may have made views of its own
                for name, opened in self._opened.items():
                    opened.frame.createOrReplaceTempView(name)

    def add(self, name: str, opened: OpenSource) -> None:
        """Let ``name`` be an open source, which has no view."""
        self._opened[name] = opened

    def close(self) -> None:
        """Drop the views."""
        for source in self.request.sources:
            self.spark.catalog.dropTempView(source.name)

    def land(self) -> None:
        """Read landed files and outside sources, and let the queries after them see their rows.

        Raises:
            JobError: as ``landing.land``.
        """
        has_landed = False
        for source in self.request.sources:
            opened = self._opened[source.name]
            if isinstance(source, FileSource):
                if opened.landing is not None:
                    opened, has_landed = self._landed(opened, opened.landing), True
                elif opened.listed is not None:
                    read = SourceMetrics(
                        files=len(opened.listed.files),
                        bytes=opened.listed.byte_size,
                        records=opened.footers.row_count if opened.footers else 0,
                    )
                    self.metrics[source.name] = self._with_rest(source.name, read)
            elif opened.is_outside:
                with failing_finally(source):
                    opened, has_landed = self._kept(source.name, opened), True
            elif isinstance(source, SqlSource | DerivedSource) and has_landed:
                opened = self._open(source)
            self._opened[source.name] = opened
            if isinstance(source, CdcSource):
                self._count_skipped(source)

    def _count_skipped(self, source: CdcSource) -> None:
        """Tell which events of files, or of an outside source, no row comes from."""
        inner = self._opened[source.source]
        if inner.landed is None and inner.listed is None:
            return
        skipped = skipped_events(self.spark, source)
        if skipped.count:
            read = self.metrics.get(source.source, SourceMetrics())
            self.metrics[source.source] = replace(read, skipped_events=skipped.count)
            say = self.progress.warn if skipped.tables else self.progress.say
            say(skipped.told(source))

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Say, where a block fails because Spark cannot read a file that is whole, what is in it.

        Raises:
            NotSupportedError: names the source, the file and the column.
        """
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            if translated(error).code is ErrorCode.DATA_FILE_UNREADABLE:
                for opened in self._opened.values():
                    if opened.listed is not None:
                        refuse_old_times(opened.listed)
            raise

    def require_unchanged(self) -> None:
        """Check that files which are not landed are still those that were listed.

        Raises:
            CatalogError: SOURCE_UNREADABLE.
        """
        for opened in self._opened.values():
            if opened.listed is not None:
                opened.listed.require_unchanged()

    def _open(self, source: Source) -> OpenSource:
        if isinstance(source, Scd2Source):
            return self._open_versions(source)
        limits = self.request.text_limits
        chosen = self.chosen.get(source.name)
        changes = self._changes.get(source.name)
        connector = self.access.connector(source, self.connector)
        opened = open_source(
            self.spark,
            source,
            connector,
            self._pinned,
            limits,
            chosen,
            changes,
            self.access,
            self._keyed,
        )
        frame = self.moment.fixed(opened.frame)
        if frame is not opened.frame:
            frame.createOrReplaceTempView(source.name)
        other = None if connector is self.connector else connector
        return replace(opened, frame=frame, connector=other)

    def _keyed(self, source: CdcSource, rows: DataFrame) -> DataFrame:
        return stored_keys(source, rows, self.request.statement, self.target)

    def _open_versions(self, source: Scd2Source) -> OpenSource:
        """The columns of versions; their rows are found when the rows of their source are read."""
        assert self.target is not None  # noqa: S101 - the statement is a MERGE
        changes = change_events(self.request.sources, source)
        rows = dated(changes, source, self._opened[source.source].frame)
        roles = roles_of(source, self.target, rows.schema, changes)
        require_order_of_times(self.spark, source, roles)
        columns = [named(null_of(each.dataType), each.name) for each in roles.schema]
        frame = self.spark.sql("SELECT TRUE").where("FALSE").selectExpr(*columns)
        frame.createOrReplaceTempView(source.name)
        return OpenSource(frame, is_pinned=False)

    def _with_rest(self, name: str, read: SourceMetrics) -> SourceMetrics:
        """What was read of a source, with what is left of it."""
        chosen = self._chosen.get(name)
        if chosen is None:
            return read
        return replace(read, left_files=chosen.left_files, left_bytes=chosen.left_bytes)

    def _kept(self, name: str, opened: OpenSource) -> OpenSource:
        """An outside source, whose rows are read now and never again."""
        rows = kept_rows(self.spark, opened.frame, self.connector.storage, self.scratch)
        self.metrics[name] = SourceMetrics(records=rows.row_count)
        rows.frame.createOrReplaceTempView(name)
        return replace(opened, frame=rows.frame, is_pinned=True, landed=rows)

    def _landed(self, opened: OpenSource, landing: Landing) -> OpenSource:
        source, storage = landing.source, self.connector.storage
        folder = new_source_folder(self.scratch)
        quarantine = quarantine_of(self.spark, source, self.connector, self.request)
        operation_id = self.request.operation_id
        landed = land(self.spark, landing, storage, folder, operation_id, quarantine)
        for note in landed.notes:
            self.progress.say(note)
        self.metrics[source.name] = self._with_rest(source.name, landed.metrics)
        stored_names = {name: f"c{i}" for i, name in enumerate(landing.schema.names)}
        names = [path.removeprefix(f"{storage.root}/") for path in landed.files]
        fields = landing.schema.fields
        spilled = spilled_frame(self.spark, storage, names, fields, stored_names)
        frame = padded(spilled, declared_lengths(source))
        frame.createOrReplaceTempView(source.name)
        rows = MaterializedSource(
            frame=frame,
            row_count=landed.row_count,
            byte_size=landed.byte_size,
            files=landed.files,
            stored_names=stored_names,
            filesystem=storage.filesystem,
            column_bytes=dict(zip(landing.schema.names, landed.column_bytes[1:], strict=False)),
        )
        return replace(opened, frame=frame, is_pinned=True, landed=rows)
