"""The row id of an append table: the ordinal of the planned file, and the row's position in it."""

from __future__ import annotations

from typing import Final

FILE_FIELD: Final = "file"
POSITION_FIELD: Final = "position"
