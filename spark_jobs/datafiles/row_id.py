"""The row id of rows without keys: the ordinal of the planned file and the position in it."""

from __future__ import annotations

from typing import Final

FILE_FIELD: Final = "file"
POSITION_FIELD: Final = "position"
