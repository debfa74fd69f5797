"""What the sources of a statement are, so that a later run can tell whether they are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from spark_jobs.contract.approval import SourceEvidence
from spark_jobs.engine.analysis.catalyst import reads_beside_views

if TYPE_CHECKING:
    from spark_jobs.engine.source.open_source import OpenSource
    from spark_jobs.engine.source.source_files import SourceFiles
    from spark_jobs.spi.tables import TableHandle


def evidence_of(sources: Mapping[str, OpenSource]) -> dict[str, SourceEvidence]:
    """The evidence of opened sources, by name.

    SQL over sources has none of its own: its text is in the request, and its sources have theirs.
    """
    found = {}
    for name, opened in sources.items():
        listed = opened.landing.files if opened.landing is not None else opened.listed
        if listed is not None:
            found[name] = of_files(listed)
        elif opened.table is not None:
            found[name] = of_table(opened.table)
        elif opened.files is not None or reads_beside_views(opened.frame):
            found[name] = SourceEvidence(is_known=False)
    return found


def snapshot_digest(table: TableHandle) -> str:
    """SHA-256 (hex) of what only the pinned snapshot has."""
    return _sha256(table.snapshot_mark)


def of_table(table: TableHandle) -> SourceEvidence:
    """The evidence of a pinned table."""
    digest = _sha256([snapshot_digest(table), columns_digest(table)])
    return SourceEvidence(table.snapshot_id, digest=digest)


def columns_digest(table: TableHandle, *, stored: bool = True) -> str:
    """SHA-256 (hex) of a table's columns and partitions; ``stored``: of exactly those stored ones.

    Else tables whose columns look alike have the same.
    """
    columns = [asdict(each) for each in (*table.columns, *table.opaque_columns)]
    fields = [asdict(each) for each in table.partitioned_by]
    return _sha256([columns, fields, table.key_columns, table.schema_mark if stored else ""])


def of_files(listed: SourceFiles) -> SourceEvidence:
    """The evidence of files, of which there may be none."""
    files = [[each.name, *map(str, each.version)] for each in listed.files]
    is_known = all(each.version.modified is not None for each in listed.files)
    return SourceEvidence(None, len(files), listed.byte_size, _sha256(files), is_known)


def _sha256(document: object) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
