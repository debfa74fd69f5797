"""Tables that Paimon's own Java library makes and writes, with its defaults."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

from tests.judge.jvm import server
from tests.support.judged_values import from_arrow


@dataclass(frozen=True, slots=True)
class JavaTable:
    """A table, or a branch of one, in a warehouse."""

    warehouse: Path
    name: str
    kinds: Mapping[str, Any]
    branch: str | None = None
    zone: str = "UTC"

    @classmethod
    def create(
        cls,
        warehouse: Path,
        name: str,
        schema: pa.Schema,
        partition_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> JavaTable:
        """A new table with the Paimon types that pypaimon finds for the Arrow types."""
        fields = Schema.from_pyarrow_schema(schema).fields
        kinds = {field.name: field.type.to_dict() for field in fields}
        return cls.of_types(warehouse, name, kinds, partition_keys, options)

    def append(self, rows: pa.Table) -> None:
        """One commit with these rows."""
        self.append_rows(from_arrow(rows))

    def append_rows(self, rows: Iterable[Mapping[str, Any]], user: str | None = None) -> None:
        """One commit with rows whose values are as in ``tests.support.judged_values``.

        ``user``: what the name of its commit user begins with.
        """
        self._ask(mode="append", rows=list(map(self._row, rows)), user=user)

    def append_records(
        self,
        records: Iterable[tuple[str, Mapping[str, Any]]],
        bucket: int | None = None,
        *,
        overwrites: bool = False,
    ) -> None:
        """One commit to a table with a primary key; each row comes with its kind, like ``-D``.

        ``bucket``: where to put them, for tables whose writers do not choose it. ``overwrites``:
        they take the place of all rows.
        """
        found = list(records)
        self._ask(
            mode="append",
            rows=[self._row(row) for _, row in found],
            kinds=[kind for kind, _ in found],
            bucket=bucket,
            overwrite=overwrites,
        )

    def _row(self, row: Mapping[str, Any]) -> list[Any]:
        return [to_java(kind, row[name]) for name, kind in self.kinds.items()]

    def alter(self, *changes: Sequence[Any]) -> JavaTable:
        """The table after an ALTER: ``("rename", ("s", "x"), "y")`` and others (WritePaimon)."""
        self._ask(mode="alter", changes=changes)
        return self.reloaded()

    def reloaded(self) -> JavaTable:
        """The table with the columns that it has now."""
        catalog = CatalogFactory.create({"warehouse": str(self.warehouse)})
        fields = catalog.get_table(self.name).table_schema.fields
        kinds = {field.name: field.type.to_dict() for field in fields}
        return replace(self, kinds=kinds)

    @classmethod
    def of_types(
        cls,
        warehouse: Path,
        name: str,
        kinds: Mapping[str, Any],
        partition_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        primary_keys: Sequence[str] = (),
    ) -> JavaTable:
        """A new table with columns of Paimon's types in JSON form."""
        table = cls(warehouse, name, kinds)
        table._ask(
            mode="create",
            fields=list(kinds.items()),
            partition_keys=list(partition_keys),
            primary_keys=list(primary_keys),
            options=dict(options or {}),
        )
        return table

    def delete(self, column: str, values: Iterable[Any]) -> None:
        """One commit that deletes, by deletion vectors, the rows with one of these values."""
        self._ask(
            mode="delete", column=column, values=[to_java(self.kinds[column], v) for v in values]
        )

    def write_columns(self, first_row_id: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """One commit with new values of some columns of all rows of a range of row ids."""
        names = [name for name in self.kinds if name in rows[0]]
        values = [[to_java(self.kinds[name], row[name]) for name in names] for row in rows]
        self._ask(mode="columns", columns=names, first=first_row_id, rows=values)

    def new_branch(self, branch: str) -> JavaTable:
        """A branch that starts at the latest snapshot, which gets a tag."""
        self._ask(mode="branch", name=branch, tag=f"before-{branch}")
        return JavaTable(self.warehouse, self.name, self.kinds, branch)

    def forward(self, branch: str) -> None:
        """Paimon's own fast-forward to a branch."""
        self._ask(mode="forward", name=branch)

    def drop_branch(self, branch: str) -> None:
        """The end of a branch."""
        self._ask(mode="drop_branch", name=branch)

    def compact(self, *, full: bool = True, buckets: Iterable[int] = ()) -> None:
        """One commit that puts small files together, as Paimon's compaction job does.

        ``buckets``: only those, in all partitions. Not ``full``: what its rules for levels of
        sorted files choose.
        """
        self._ask(mode="compact", full=full, buckets=list(buckets))

    def expire(self, *, keeps_changelogs: bool = False) -> None:
        """Remove all snapshots but the latest, and the files that only they have.

        ``keeps_changelogs``: their changelogs outlive them.
        """
        self._ask(mode="expire", keeps_changelogs=keeps_changelogs)

    def roll_back(self, snapshot_id: int) -> None:
        """Make an earlier snapshot the latest one; those behind it are gone."""
        self._ask(mode="rollback", snapshot=snapshot_id)

    def _ask(self, **request: Any) -> None:
        where = {"warehouse": str(self.warehouse), "table": self.name, "branch": self.branch}
        server("WritePaimon", self.zone).ask(**where, **request)


def to_java(kind: Any, value: Any) -> Any:
    """JSON of a value of type ``kind``, which ``judged_values.from_java`` reads."""
    if value is None:
        return None
    if isinstance(kind, Mapping):
        return _nested(kind, value)
    name = re.match(r"[A-Z]+", kind)
    assert name is not None, kind
    return _ATOMIC.get(name[0], _same)(value)


def _nested(kind: Mapping[str, Any], value: Any) -> Any:
    name = kind["type"].split()[0]
    if name == "ARRAY":
        return [to_java(kind["element"], each) for each in value]
    if name == "MAP":
        return [[to_java(kind["key"], k), to_java(kind["value"], v)] for k, v in value.items()]
    assert name == "ROW", kind
    return [to_java(field["type"], value[field["name"]]) for field in kind["fields"]]


def _same(value: Any) -> Any:
    return value


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _double(value: float) -> str:
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


_ATOMIC: dict[str, Callable[[Any], Any]] = {
    "FLOAT": _double,
    "DOUBLE": _double,
    "DECIMAL": str,
    "BINARY": _base64,
    "VARBINARY": _base64,
    "BYTES": _base64,
    "DATE": lambda value: (value - date(1970, 1, 1)).days,
    "TIME": lambda value: value // 1_000_000,
    "TIMESTAMP": lambda value: [value // 1_000_000, value % 1_000_000],
}
