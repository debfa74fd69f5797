"""Names that columns and properties of Iceberg tables may not have: they mean something else."""

from __future__ import annotations

from collections.abc import Mapping
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
# What Java's ``TableProperties`` and Spark reserve, and what to do instead.
_METADATA: Final = "Leave it out: it tells what the table's metadata says."
RESERVED_PROPERTIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("uuid", "snapshot-count", "current-snapshot-id", "current-snapshot-summary"),
            *("current-snapshot-timestamp-ms", "current-schema", "provider", "owner"),
        ),
        _METADATA,
    ),
    "default-partition-spec": "Use ADD, DROP or REPLACE PARTITION FIELD.",
    "default-sort-order": "Use WRITE ORDERED BY.",
    "sort-order": "Use WRITE ORDERED BY.",
    "identifier-fields": "Use SET IDENTIFIER FIELDS.",
    "location": "Create a table there, and insert the rows.",
}


def is_reserved(name: str) -> bool:
    """Whether Iceberg's readers need the name of a column for themselves, in any case."""
    return name.lower() in NAMES
