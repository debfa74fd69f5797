"""ALTER TABLE, all changes of a statement in one commit of metadata, and DROP TABLE.

Driver only.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

from spark_jobs.connectors.iceberg.alter.columns import change_columns
from spark_jobs.connectors.iceberg.alter.definition import Definition
from spark_jobs.connectors.iceberg.alter.new_definition import (
    NewDefinition,
    is_made,
    with_name_mapping,
)
from spark_jobs.connectors.iceberg.alter.partition import (
    change_identifiers,
    change_order,
    change_partition,
    require_identifiers,
)
from spark_jobs.connectors.iceberg.alter.properties import change_properties
from spark_jobs.connectors.iceberg.alter.refusals import refuse_altered
from spark_jobs.connectors.iceberg.commit.metadata_commits import MetadataCommits
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import until_committed
from spark_jobs.connectors.shared.table.alterations import (
    alter_report,
    change_each,
    drop_noted,
    store_noted,
)
from spark_jobs.contract import codec
from spark_jobs.contract.alter_table import (
    AlteredPart,
    AlterTableReport,
    AlterTableSpec,
    ColumnChange,
    IdentifierChange,
    PartitionFieldChange,
    SetWriteOrder,
    TableChange,
)
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg.expiry import GC_ENABLED
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.spi.connector import find_table


@dataclass(frozen=True, slots=True)
class IcebergAlterations:
    """Implements ``ConnectorAlterations``."""

    catalog: IcebergCatalog
    metadata: IcebergMetadata

    def drop_table(
        self, name: TableName, spec: DropTableSpec, *, note: ChangeNote = NO_NOTE
    ) -> bool:
        """Drop the table; its files stay, unless a server is asked to purge them."""
        if spec.purge and self.catalog.decides_at_client:
            raise NotSupportedError(
                f"DROP TABLE {name} PURGE: in this catalog, nobody removes the files of a table "
                "that is gone.",
                "Leave PURGE out, and remove the table's folder; or clear it before with TRUNCATE, "
                "ExpireSnapshotsOperator and RemoveOrphanFilesOperator.",
            )

        def identity() -> str | None:
            handle = find_table(self.metadata, name)
            if handle is None:
                return None
            table = pinned_table(handle)
            properties = table.metadata.properties
            if spec.purge and str(properties.get(GC_ENABLED, "true")).lower() == "false":
                raise NotSupportedError(
                    f"{name} has the property {GC_ENABLED} = false: its files may belong to other "
                    "tables, too.",
                    "Leave PURGE out.",
                )
            return str(table.metadata.table_uuid)

        return drop_noted(
            name, spec, identity, lambda: self.catalog.drop(name, purge=spec.purge), note
        )

    def alter_table(
        self,
        name: TableName,
        spec: AlterTableSpec,
        *,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> AlterTableReport:
        """Change the table's definition; columns of all branches, too."""
        if name.branch != MAIN_BRANCH:
            raise NotSupportedError(
                f"{name} is a branch: columns, partition fields and properties belong to the whole "
                "table.",
                f"Alter {name.without_branch}.",
            )
        commits = MetadataCommits(self.catalog, self.metadata, name)
        noted = None if dry_run else note.read()
        if noted is not None and is_made(commits.table(), noted["change"]):
            return codec.decode(AlterTableReport, noted["report"])
        return until_committed(partial(_attempt, commits, spec, dry_run, note))


def _attempt(
    commits: MetadataCommits, spec: AlterTableSpec, dry_run: bool, note: ChangeNote, number: int
) -> AlterTableReport | None:
    """What was changed; None: others changed the table meanwhile."""
    del number
    table = commits.table()
    before = Definition.of(table.metadata)
    after = _altered(commits.name, before, spec)
    wanted = NewDefinition(commits.name, before, after)
    report = _report(before, after)
    if wanted.is_nothing:
        return report
    refuse_altered(table, wanted)
    if dry_run:
        return report
    noted = {"change": wanted.noted(table), "report": codec.encode(report)}
    is_changed = store_noted(note, noted, partial(commits.change, table, wanted))
    return report if is_changed else None


def _altered(name: TableName, before: Definition, spec: AlterTableSpec) -> Definition:
    """The definition with all changes of ``spec``.

    Raises:
        AnalysisError, NotSupportedError: as the changes, with the number of the change.
    """
    after = copy.deepcopy(before)
    change_each(spec, partial(_change, name, after))
    require_identifiers(name, after)
    with_name_mapping(before, after)
    return after


def _change(name: TableName, table: Definition, change: TableChange) -> None:
    acts: tuple[tuple[Any, Any], ...] = (
        (ColumnChange, change_columns),
        (PartitionFieldChange, change_partition),
        (IdentifierChange, change_identifiers),
        (SetWriteOrder, change_order),
    )
    for kinds, act in acts:
        if isinstance(change, get_args(kinds) or kinds):
            act(name, table, change)
            return
    change_properties(name, table, change)  # type: ignore[arg-type]


def _report(before: Definition, after: Definition) -> AlterTableReport:
    report = alter_report(before.described(), after.described())
    moved = [AlteredPart("order of columns", *each) for each in after.moved(before)]
    return replace(report, parts=(*report.parts, *moved))
