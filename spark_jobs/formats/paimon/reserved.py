"""Names that columns of Paimon tables may not have, because Paimon's files and readers use them."""

from __future__ import annotations

from typing import Final

NAMES: Final = frozenset({"_row_id", "_sequence_number", "_value_kind", "_level", "rowkind"})
# In files of primary-key tables, it stands before the names of key columns.
KEY_PREFIX: Final = "_key_"


def is_reserved(name: str) -> bool:
    """Whether Paimon needs the name of a column for itself, in any case."""
    lowered = name.lower()
    return lowered in NAMES or lowered.startswith(KEY_PREFIX)
