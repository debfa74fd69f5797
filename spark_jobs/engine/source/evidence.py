"""What the sources of a statement are, so that a later run can tell whether they are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_jobs.contract.approval import SourceEvidence

if TYPE_CHECKING:
    from spark_jobs.engine.source.open_source import OpenSource
    from spark_jobs.engine.source.source_files import SourceFiles
    from spark_jobs.spi.tables import TableHandle


def evidence_of(sources: Mapping[str, OpenSource]) -> dict[str, SourceEvidence]:
    """The evidence of opened sources, by name; none of SQL, which has its text and its sources."""
    found = {}
    for name, opened in sources.items():
        listed = opened.landing.files if opened.landing is not None else opened.listed
        if listed is not None:
            found[name] = _of_files(listed)
        elif opened.table is not None:
            found[name] = of_table(opened.table)
    return found


def of_table(table: TableHandle) -> SourceEvidence:
    """The evidence of a pinned table."""
    digest = hashlib.sha256(table.snapshot_mark.encode()).hexdigest()
    return SourceEvidence(table.snapshot_id, digest=digest)


def _of_files(listed: SourceFiles) -> SourceEvidence:
    files = [[each.name, *map(str, each.version)] for each in listed.files]
    digest = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    return SourceEvidence(None, len(files), listed.byte_size, digest)
