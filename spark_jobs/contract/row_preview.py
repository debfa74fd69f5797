"""Some of the rows that a dry run would change, as texts: for the page of its task, and no XCom.

The job stores them in the workspace, in the file that ``operation_files.preview_path`` names. Only
who may see rows of the catalog's tables gets them from there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Literal

from spark_jobs.contract import codec
from spark_jobs.contract.checks import require

VERSION: Final = 1
# Of each operation.
MOST_ROWS: Final = 100
# As samples of rows that two snapshots do not share.
MOST_COLUMNS: Final = 30
MOST_CHARACTERS: Final = 200

Values = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class PreviewPlace:
    """Of which work a dry run keeps rows: ``rows`` of each operation at most.

    ``catalog`` is the ``catalog_mark`` of its catalog.
    """

    operation_id: str
    table: str
    catalog: str
    rows: int


@dataclass(frozen=True, slots=True)
class PreviewedRow:
    """A row that would change, with a text for each column; long texts are cut off.

    ``clause``: the number of the WHEN clause of a MERGE, from 1. ``old`` is None for an inserted
    row, ``new`` for a deleted one. ``differs``: the positions of the columns that an update
    changes, whether or not their texts show it.
    """

    operation: Literal["insert", "update", "delete"]
    clause: int | None
    old: Values | None
    new: Values | None
    differs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RowPreview:
    """Rows that a dry run would change, of each operation the first that were found.

    Values are those of ``columns``, not of ``left_out``.
    """

    operation_id: str
    table: str
    catalog: str
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    rows: tuple[PreviewedRow, ...]
    version: int = VERSION

    def to_json(self) -> str:
        """The rows as a JSON document."""
        return json.dumps(codec.encode(self), ensure_ascii=True)

    @classmethod
    def from_json(cls, text: str) -> RowPreview:
        """The rows in a JSON document.

        Raises:
            RequestError: REQUEST_VERSION_UNKNOWN, or REQUEST_INVALID with the JSON path.
        """
        return codec.decode(cls, codec.load_versioned(text, VERSION))


def require_preview_rows(rows: int | None) -> None:
    """Check how many rows a dry run shall keep.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    is_known = rows is None or 1 <= rows <= MOST_ROWS
    require(is_known, "preview_rows", f"{rows} is not from 1 to {MOST_ROWS}")


def shortened(text: str | None) -> str | None:
    """A value's text, cut off where it is too long."""
    if text is None or len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\N{HORIZONTAL ELLIPSIS}"
