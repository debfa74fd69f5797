"""What a table of a history should hold: its columns and rows, in plain Python.

A row has its values by *field*: the first name of a column, which it keeps when it is renamed.
Times and dates are text, as in JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

Row = dict[str, Any]
FIELDS: Final = ("id", "p", "v", "at", "d", "m", "n")


@dataclass
class Model:
    """``columns`` and those ``nested`` in ``n``: names by field, in their order.

    ``snapshots`` has the rows of each snapshot by its id.
    """

    columns: dict[str, str] = field(default_factory=lambda: dict(zip(FIELDS, FIELDS, strict=True)))
    nested: dict[str, str] = field(default_factory=lambda: {"x": "x"})
    rows: list[Row] = field(default_factory=list)
    snapshots: dict[int, list[Row]] = field(default_factory=dict)

    def drop(self, name: str) -> None:
        """Drop the column of a field: nobody sees its values again, even if it is added again."""
        del self.columns[name]
        for row in (row for rows in (self.rows, *self.snapshots.values()) for row in rows):
            row.pop(name, None)

    def visible(self) -> list[str]:
        """The rows as everybody should read them, in the form of ``told``."""
        return told([self._visible(row) for row in self.rows])

    def told(self, row: Row) -> str:
        """One of them."""
        return repr(self._visible(row))

    def _visible(self, row: Row) -> dict[str, Any]:
        values = {name: row.get(each) for each, name in self.columns.items()}
        struct = row.get("n")
        if struct is not None:
            values["n"] = {name: struct.get(each) for each, name in self.nested.items()}
        return values


def told(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in a form and an order in which they can be compared."""
    return sorted(map(repr, rows))
