"""What a table with a primary key should hold: an independent model of Paimon's merge engines."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Key = tuple[Any, ...]


class KeyedModel:
    """Rows by key after records of Paimon's writers and statements of this project.

    Columns: ``id``, ``part``, ``a`` (INT), ``b`` (STRING), ``c`` (DECIMAL), ``seq`` (INT).
    ``engine`` is Paimon's ``merge-engine``; ``sequence``: ``seq`` is the sequence field.
    """

    def __init__(self, key: tuple[str, ...], engine: str, *, sequence: bool) -> None:
        self.key = key
        self.engine = engine
        self.sequence = sequence
        self.rows: dict[Key, Row] = {}
        self._buried: dict[Key, int] = {}

    def key_of(self, row: Row) -> Key:
        return tuple(row[name] for name in self.key)

    def is_buried(self, row: Row) -> bool:
        """Whether the files may have a delete record of the row's key."""
        return self.key_of(row) in self._buried

    def written(self, kind: str, row: Row) -> None:
        """A record of a writer of Paimon."""
        key = self.key_of(row)
        if kind == "-D":
            if self._is_newer(key, row):
                self.rows.pop(key, None)
                self._buried[key] = row["seq"]
            return
        old = self.rows.get(key)
        if old is None:
            if not self.sequence or row["seq"] >= self._buried.get(key, row["seq"]):
                self.rows[key] = dict(row)
        elif self.engine == "first-row":
            return
        elif self.engine == "deduplicate":
            if self._is_newer(key, row):
                self.rows[key] = dict(row)
        else:
            self.rows[key] = self._combined(key, old, row)

    def stored(self, row: Row) -> None:
        """A row that a statement inserts or updates."""
        self.rows[self.key_of(row)] = dict(row)
        self._buried.pop(self.key_of(row), None)

    def inserted(self, row: Row) -> None:
        """A row of INSERT INTO: merged with the stored row, if there is one; -D is none."""
        if self.key_of(row) in self.rows:
            self.written("+I", row)
        else:
            self.stored(row)

    def deleted(self, key: Key) -> None:
        """A row that a statement deletes."""
        del self.rows[key]

    def _is_newer(self, key: Key, row: Row) -> bool:
        old = self.rows.get(key)
        return not self.sequence or old is None or row["seq"] >= old["seq"]

    def _combined(self, key: Key, old: Row, new: Row) -> Row:
        first, last = (old, new) if self._is_newer(key, new) else (new, old)
        merged = {name: first[name] if last[name] is None else last[name] for name in old}
        if self.engine == "aggregation":
            numbers = [row["a"] for row in (old, new) if row["a"] is not None]
            merged["a"] = sum(numbers) if numbers else None
            texts = [row["b"] for row in (old, new) if row["b"] is not None]
            merged["b"] = max(texts) if texts else None
        return merged
