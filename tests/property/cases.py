"""Random tables, sources and statements, several statements after one another on each table."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.oracle.expressions import Row, Value
from tests.oracle.merge import Merge, TableColumn
from tests.property.grammar import TYPES, VALUES
from tests.property.statements import merges

STATEMENTS_PER_TABLE = 3
BIG = TableColumn("big", "BIGINT")
_BEYOND_INT = 3_000_000_000
_KEYS = list(range(40))
_NULL_SHARE = 0.15
_TARGET_SIZES = [20, 40, 30, 40, 10, 40, 40, 30, 0, 3]
_SOURCE_SIZES = [10, 30, 20, 30, 25, 30, 30, 20, 0, 3]


@dataclass(frozen=True)
class Table:
    """A target as it is written: rows by commit, each commit at least one file per partition.

    ``statistics``: its files tell their columns' minimum and maximum, so that keys can prune them.
    """

    columns: tuple[TableColumn, ...]
    partition: str | None
    commits: tuple[tuple[Row, ...], ...]
    row_group_size: int
    statistics: bool = False

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [row for commit in self.commits for row in commit]


@dataclass(frozen=True)
class Step:
    """One statement with its source."""

    source_columns: tuple[TableColumn, ...]
    source: tuple[Row, ...]
    merge: Merge
    aliases: tuple[str, str] = ("t", "s")
    shout: bool = False


@dataclass(frozen=True)
class Chain:
    """Statements that run one after another on one table."""

    table: Table
    steps: tuple[Step, ...]


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """A table and the statements that run on it."""
    table = draw(tables())
    steps = [draw(_steps(table.columns)) for _ in range(STATEMENTS_PER_TABLE)]
    return Chain(table, tuple(steps))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A target of up to 40 rows in up to four commits."""
    columns, partition = draw(_columns())
    rows = draw(_rows(columns, _TARGET_SIZES))
    pieces = draw(st.integers(1, 4))
    statistics = draw(st.booleans())
    if statistics:
        # Neighbours in key order share a file.
        rows = sorted(rows, key=lambda row: (row["id"] is None, row["id"]))
        width = -(-len(rows) // pieces)
        commits = [rows[i * width : (i + 1) * width] for i in range(pieces)]
    else:
        commits = [rows[i::pieces] for i in range(pieces)]
    kept = tuple(tuple(commit) for commit in commits if commit)
    return Table(columns, partition, kept, draw(st.integers(3, 7)), statistics)


@st.composite
def _columns(draw: st.DrawFn) -> tuple[tuple[TableColumn, ...], str | None]:
    columns = [
        TableColumn("id", "INT"),
        TableColumn("v", "INT", nullable=draw(st.booleans())),
        TableColumn("p", draw(st.sampled_from(["STRING", "STRING", "INT", "DATE"]))),
    ]
    others = [
        TableColumn("k", "STRING"),
        TableColumn("w", "BIGINT", nullable=draw(st.booleans())),
        TableColumn("name", "STRING", nullable=draw(st.booleans())),
        TableColumn("day", "DATE"),
        TableColumn("flag", "BOOLEAN"),
    ]
    columns += draw(st.lists(st.sampled_from(others), unique=True, max_size=3))
    partitioned = draw(st.sampled_from([True, True, True, False]))
    return tuple(draw(st.permutations(columns))), "p" if partitioned else None


@st.composite
def _steps(draw: st.DrawFn, target: tuple[TableColumn, ...]) -> Step:
    same = [TableColumn(column.name, column.type) for column in target if column.name != "id"]
    key = TableColumn("id", draw(st.sampled_from(["INT", "INT", "INT", "BIGINT"])))
    columns = draw(st.permutations([key, *same, TableColumn("op", "STRING"), BIG]))
    unique = draw(st.sampled_from([False, True, True, False, True]))
    rows = draw(_rows(columns, _SOURCE_SIZES, unique=unique))
    aliases = draw(st.sampled_from([("t", "s"), ("target", "src")]))
    merge = draw(merges(target, columns))
    return Step(tuple(columns), tuple(rows), merge, aliases, draw(st.booleans()))


@st.composite
def _rows(
    draw: st.DrawFn,
    columns: Sequence[TableColumn],
    sizes: Sequence[int],
    *,
    unique: bool = False,
) -> list[Row]:
    """Rows by a random generator of their own.

    Drawn cell by cell they would be few and slow to draw; hypothesis shrinks their number and seed.
    """
    chance = random.Random(draw(st.integers(0, 2**16)))
    size = draw(st.sampled_from(sizes))
    null_keys = draw(st.sampled_from([True, True, False]))
    nulls = {column for column in columns if column.nullable and chance.random() < 0.4}
    rows = []
    for key in _keys(columns, chance, unique=unique)[:size]:
        values = {column.name: _value(column, column in nulls, chance) for column in columns}
        is_null = null_keys and chance.random() < _NULL_SHARE
        rows.append(values | {"id": None if is_null else key})
    return rows


def _keys(columns: Sequence[TableColumn], chance: random.Random, *, unique: bool) -> list[int]:
    keys = chance.choice([_KEYS, _KEYS, _KEYS, _KEYS[:12], _KEYS[30:]])
    drawn = chance.sample(keys, len(keys)) if unique else chance.choices(keys, k=40)
    if TableColumn("id", "BIGINT") in columns:
        # Cut to 32 bits it would be a key of the target.
        drawn = [key + 2**32 if chance.random() < 0.05 else key for key in drawn]
    return drawn


def _value(column: TableColumn, nulls: bool, chance: random.Random) -> Value:
    if nulls and chance.random() < _NULL_SHARE:
        return None
    known = [7, 8, 9, _BEYOND_INT] if column.name == BIG.name else VALUES[TYPES[column.type]]
    return chance.choice(known)
