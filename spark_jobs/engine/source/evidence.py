"""What the sources of a statement are, so that a later run can tell whether they are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_jobs.contract.approval import SourceEvidence
from spark_jobs.engine.analysis.catalyst import reads_beside_views
from spark_jobs.engine.source.pinned_tables import columns_digest, sha256, snapshot_digest

if TYPE_CHECKING:
    from spark_jobs.engine.source.open_source import OpenSource
    from spark_jobs.engine.source.source_files import SourceFiles
    from spark_jobs.engine.source.table_changes import ChosenChanges
    from spark_jobs.spi.tables import TableHandle


def evidence_of(sources: Mapping[str, OpenSource]) -> dict[str, SourceEvidence]:
    """The evidence of opened sources, by name.

    SQL over sources has none of its own: its text is in the request, and its sources have theirs.
    """
    evidence = {}
    for name, opened in sources.items():
        listed = opened.landing.files if opened.landing is not None else opened.listed
        if listed is not None:
            evidence[name] = of_files(listed)
        elif opened.changes is not None:
            evidence[name] = of_changes(opened.changes)
        elif opened.table is not None:
            evidence[name] = of_table(opened.table)
        elif opened.is_outside or opened.files is not None or reads_beside_views(opened.frame):
            evidence[name] = SourceEvidence(is_known=False)
    return evidence


def of_table(table: TableHandle) -> SourceEvidence:
    """The evidence of a pinned table."""
    digest = sha256([snapshot_digest(table), columns_digest(table)])
    return SourceEvidence(table.snapshot_id, digest=digest)


def of_changes(changes: ChosenChanges) -> SourceEvidence:
    """The evidence of the changes of a table."""
    digest = sha256([of_table(changes.table).digest, changes.since, changes.is_empty])
    return SourceEvidence(changes.table.snapshot_id, digest=digest)


def of_files(listed: SourceFiles) -> SourceEvidence:
    """The evidence of files, of which there may be none."""
    files = [[each.name, *map(str, each.version)] for each in listed.files]
    is_known = all(each.version.modified is not None for each in listed.files)
    return SourceEvidence(None, len(files), listed.byte_size, sha256(files), is_known)
