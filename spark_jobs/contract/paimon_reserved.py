"""Names that Paimon keeps for its own columns."""

from __future__ import annotations

from typing import Final

_NAMES: Final = ("_row_id", "_sequence_number", "_value_kind", "_level", "rowkind")
_PREFIX: Final = "_key_"


def is_reserved(name: str) -> bool:
    """Whether no column of a table can have this name, in any case."""
    return name.lower() in _NAMES or name.lower().startswith(_PREFIX)
