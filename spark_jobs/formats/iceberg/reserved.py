"""Names that columns of Iceberg tables may not have, because readers use them for metadata."""

from __future__ import annotations

from typing import Final

# In which files of version 3 store the ids of rows, and who changed them last.
ROW_ID: Final = "_row_id"
LAST_UPDATED: Final = "_last_updated_sequence_number"
# Of the Iceberg specification, "Reserved Field IDs", and Spark's names of changes.
NAMES: Final = frozenset(
    {
        *("_file", "_pos", "_deleted", "_spec_id", "_partition"),
        *(ROW_ID, LAST_UPDATED),
        *("_change_type", "_change_ordinal", "_commit_snapshot_id"),
    }
)


def is_reserved(name: str) -> bool:
    """Whether Iceberg's readers need the name of a column for themselves, in any case."""
    return name.lower() in NAMES
