"""The works of the comparison: which statement, on which table, with which source.

Every engine gets the same text of a MERGE, with the names of its own table and source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

ALL: Final = ("*",)
ASSIGNED: Final = ("price", "comment")

Landing = Literal["file", "files", "table", "query"]


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE of a source ``s`` into a table ``t`` by equal ``keys``.

    ``delete`` and ``update`` are for matched rows: a condition, and the columns that take the
    source's values. ``insert`` are the columns of rows that match none. ``orphans`` is a condition
    on target rows without a source row, which are deleted.
    """

    keys: tuple[str, ...] = ("id",)
    delete: str | None = None
    update: tuple[str, ...] = ()
    insert: tuple[str, ...] = ()
    orphans: str | None = None

    def text(self, target: str, source: str) -> str:
        """The statement."""
        on = " AND ".join(f"t.{key} = s.{key}" for key in self.keys)
        parts = [f"MERGE INTO {target} t USING {source} s ON {on}"]
        if self.delete is not None:
            parts.append(f"WHEN MATCHED AND {self.delete} THEN DELETE")
        if self.update:
            parts.append(f"WHEN MATCHED THEN UPDATE SET {_assignments(self.update)}")
        if self.insert:
            parts.append(f"WHEN NOT MATCHED THEN INSERT {_values(self.insert)}")
        if self.orphans is not None:
            parts.append(f"WHEN NOT MATCHED BY SOURCE AND {self.orphans} THEN DELETE")
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Overwrite:
    """INSERT OVERWRITE of the partitions that occur in the source ``landing``."""

    landing: Landing


@dataclass(frozen=True, slots=True)
class Append:
    """INSERT INTO from a query of as many rows as the table has."""


@dataclass(frozen=True, slots=True)
class Work:
    """A statement on a table of ``data.TABLES`` with a source of ``data.SOURCES``.

    ``vectors``: the tables mark deleted rows (deletion vectors, merge-on-read) instead of copying
    files.
    """

    name: str
    statement: Merge | Overwrite | Append
    table: str = "lineitem"
    source: str = "changes"
    vectors: bool = False


def _assignments(columns: tuple[str, ...]) -> str:
    return "*" if columns == ALL else ", ".join(f"{name} = s.{name}" for name in columns)


def _values(columns: tuple[str, ...]) -> str:
    if columns == ALL:
        return "*"
    return f"({', '.join(columns)}) VALUES ({', '.join(f's.{name}' for name in columns)})"


_NEW = ("id", *ASSIGNED)
_MIXED = Merge(delete="s.del", update=ASSIGNED, insert=_NEW)
_UPDATE = Merge(update=ASSIGNED)
_DELETE = Merge(delete="TRUE")
_UPSERT = Merge(update=ALL, insert=ALL)

WORKS: Final = (
    Work("mixed", _MIXED),
    Work("update", _UPDATE, source="existing-1"),
    Work("delete", _DELETE, source="existing-1"),
    Work("insert", Merge(insert=ALL), source="rows-1.2"),
    Work("clustered", _UPDATE, source="clustered"),
    Work("skewed", _MIXED, source="skewed"),
    Work("by-source", Merge(update=ASSIGNED, orphans="t.linenumber = 6 AND t.quantity = 7")),
    Work("upsert-0.01", _UPSERT, source="rows-0.01"),
    Work("upsert-1", _UPSERT, source="rows-1"),
    Work("upsert-10", _UPSERT, source="rows-10"),
    Work("upsert-30", _UPSERT, source="rows-30"),
    Work("update-0.01", _UPDATE, source="existing-0.01"),
    Work("update-10", _UPDATE, source="existing-10"),
    Work("update-30", _UPDATE, source="existing-30"),
    Work("wide", Merge(update=("c5", "c6")), "wide", "wide"),
    Work("string-key", Merge(("skey",), "s.del", ASSIGNED, ("skey", *_NEW)), "keys", "keys"),
    Work("two-keys", Merge(("k1", "k2"), "s.del", ASSIGNED, ("k1", "k2", *_NEW)), "keys", "keys"),
    Work("mor-mixed", _MIXED, vectors=True),
    Work("mor-update", _UPDATE, source="existing-1", vectors=True),
    Work("mor-delete", _DELETE, source="existing-1", vectors=True),
    Work("mor-update-10", _UPDATE, source="existing-10", vectors=True),
    Work("mor-upsert-1", _UPSERT, source="rows-1", vectors=True),
    Work("overwrite-file", Overwrite("file"), "daily"),
    Work("overwrite-files", Overwrite("files"), "daily"),
    Work("overwrite-table", Overwrite("table"), "daily"),
    Work("overwrite-query", Overwrite("query"), "daily"),
    Work("insert-query", Append(), "daily"),
    Work("partitions-2000", Overwrite("query"), "many"),
)

CORE: Final = (
    *("mixed", "update", "delete", "insert", "clustered", "upsert-30", "wide"),
    *("mor-mixed", "mor-update", "mor-delete"),
    *("overwrite-file", "overwrite-files", "overwrite-table", "overwrite-query"),
)


def works_named(names: list[str]) -> list[Work]:
    """The works of these names, ``core`` and ``all``, in the order of ``WORKS``.

    Raises:
        ValueError: there is no such work.
    """
    by_name = {work.name: work for work in WORKS}
    groups = {"core": CORE, "all": tuple(by_name)}
    wanted = {each for name in names for each in groups.get(name, (name,))}
    if unknown := wanted - by_name.keys():
        raise ValueError(f"no such work: {', '.join(sorted(unknown))}; there are {list(by_name)}")
    return [work for work in WORKS if work.name in wanted]
