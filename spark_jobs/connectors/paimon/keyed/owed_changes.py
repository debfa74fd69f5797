"""What a compaction owes to the changelog of a section. Runs on executors.

After Paimon's ``LookupChangelogMergeFunctionWrapper`` and ``FullChangelogMergeFunctionWrapper``:
the records below a level are changes of the rows that the others make.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.connectors.paimon.keyed.section_reader import SectionReader, Window


class OwedChanges(NamedTuple):
    """Changes in a window: the rows before as of ``SectionReader.merged``, and the keys changed."""

    before: pa.Table
    keys: pa.Table


def owed_changes(reader: SectionReader, window: Window, below: int) -> OwedChanges | None:
    """What the records of levels below ``below`` have changed; None: there are no such records.

    Raises:
        CatalogError: as of ``SectionReader.merged``.
        NotSupportedError: as of ``SectionReader.merged``.
    """
    owes = window.levels < below
    if not owes.any():
        return None
    keys = window.records.select(list(reader.schema.key)).filter(pa.array(owes))
    return OwedChanges(reader.merged(window.only(np.logical_not(owes))), keys)
