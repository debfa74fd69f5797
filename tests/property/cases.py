"""Random tables, sources and statements, several statements after one another on each table.

Everything about a chain follows from its seed, so that a seed is all that a failure has to name.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from spark_jobs.engine.merge.physical_plan import PlanLimits
from tests.oracle.expressions import Row, Value
from tests.oracle.merge import Merge, TableColumn, key_of
from tests.oracle.statements import DeleteFrom, Statement, UpdateTable
from tests.property.grammar import BEYOND_INT, TYPES, VALUES
from tests.property.statements import dml, insert_rows, merge, spoiled
from tests.support.forced_plans import FORCED, Forced
from tests.support.table_kinds import APPEND_COW, BUILT, FOLDER, KEYED, TableKind

Form = Literal["builder", "sql", "noisy sql"]
KINDS = (*BUILT, FOLDER, *KEYED)
_WITHOUT_KEY = (*BUILT, FOLDER)
FORMS: list[Form] = ["builder", "builder", "sql", "noisy sql"]
STATEMENTS_PER_TABLE = 3
BIG = TableColumn("big", "BIGINT")
MERGE_SHARE = 0.6
_KEYS = 40
_NULL_SHARE = 0.2
_SPOILED_SHARES = {UpdateTable: 0.3, DeleteFrom: 0.08}
_SIZES = [0, 5, 10, 20, 20, 30, 30, 40, 40]


@dataclass(frozen=True)
class Table:
    """A target as it is written: rows by commit, each commit at least one file per partition.

    ``statistics``: its files tell their columns' minimum and maximum, so that keys can prune them.
    ``rewrite_share``: above which share of deleted rows a file is rewritten, None: the default.
    """

    columns: tuple[TableColumn, ...]
    partition: str | None
    commits: tuple[tuple[Row, ...], ...]
    row_group_size: int
    statistics: bool = False
    kind: TableKind = APPEND_COW
    rewrite_share: float | None = None

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [row for commit in self.commits for row in commit]


@dataclass(frozen=True)
class Step:
    """One statement with its source.

    ``form``: as the builder's contract, as SQL text, or as SQL text with comments and line breaks
    in places where a parser may trip over them.
    """

    source_columns: tuple[TableColumn, ...]
    source: tuple[Row, ...]
    statement: Statement
    aliases: tuple[str, str] = ("t", "s")
    shout: bool = False
    form: Form = "builder"


@dataclass(frozen=True)
class Chain:
    """Statements that run one after another on one table.

    ``limits`` say how they are planned, ``plan`` which plan merges have where it can run them.
    """

    table: Table
    steps: tuple[Step, ...]
    limits: PlanLimits = field(default_factory=PlanLimits)
    plan: Forced = "auto"


def kind_of(seed: int) -> TableKind:
    """The kind of table of a seed."""
    if seed % 3 == 0:
        return KEYED[seed // 3 % len(KEYED)]
    return _WITHOUT_KEY[seed % len(_WITHOUT_KEY)]


def random_chain(
    seed: int, kind: TableKind | None = None, *, merge_share: float = MERGE_SHARE
) -> Chain:
    """The table and the statements of a seed; ``kind`` None: the table has the seed's kind.

    ``merge_share``: how many of the statements are merges, 1 for all.
    """
    chance = random.Random(seed)
    table = replace(_table(chance), kind=kind or kind_of(seed))
    if table.kind.has_key:
        table = _with_key(table)
    elif table.kind.marks_rows:
        table = replace(table, rewrite_share=chance.choice([None, 0.6, 1.0, 1.0]))
    steps = [_step(chance, table.columns, merge_share) for _ in range(STATEMENTS_PER_TABLE)]
    extra = random.Random(f"overwrite {seed}")
    if merge_share < 1 and extra.random() < 0.5:
        steps.insert(extra.randint(0, len(steps)), _insert_step(extra, table))
    # From a generator of its own: the tables and statements of a seed stay what they were.
    how = random.Random(f"plan {seed}")
    limits = how.choice([PlanLimits(), PlanLimits(filter_share=1000.0, located_share=1000.0)])
    return Chain(table, tuple(steps), limits, how.choice(FORCED))


def _table(chance: random.Random) -> Table:
    columns, partition = _columns(chance)
    keys = chance.choices(range(_KEYS), k=chance.choice(_SIZES))
    rows = _rows(chance, columns, keys)
    pieces = chance.randint(1, 4)
    statistics = chance.random() < 0.6
    if statistics:
        # Neighbours in key order share a file.
        rows = sorted(rows, key=lambda row: (row["id"] is None, row["id"]))
        width = -(-len(rows) // pieces)
        commits = [rows[i * width : (i + 1) * width] for i in range(pieces)]
    else:
        commits = [rows[i::pieces] for i in range(pieces)]
    kept = tuple(tuple(commit) for commit in commits if commit)
    return Table(columns, partition, kept, chance.randint(3, 7), statistics)


def _with_key(table: Table) -> Table:
    """The table without the rows that its primary key rules out.

    Rows that deletion vectors may mark are in one commit, because commits must not overlap.
    """
    key = {"id", table.partition}
    columns = tuple(
        replace(column, nullable=False, is_key=True) if column.name in key else column
        for column in table.columns
    )
    rows = {key_of(columns, row): row for row in table.rows if None not in key_of(columns, row)}
    pieces = 1 if table.kind.marks_rows else len(table.commits)
    kept = list(rows.values())
    commits = tuple(tuple(kept[index::pieces]) for index in range(pieces))
    return replace(table, columns=columns, commits=tuple(filter(None, commits)))


def _columns(chance: random.Random) -> tuple[tuple[TableColumn, ...], str | None]:
    columns = [
        TableColumn("id", "INT"),
        TableColumn("v", "INT", nullable=chance.random() < 0.45),
        TableColumn("p", chance.choice(["STRING", "STRING", "INT", "DATE"])),
    ]
    others = [
        TableColumn("k", "STRING"),
        TableColumn("w", "BIGINT", nullable=chance.random() < 0.45),
        TableColumn("name", "STRING", nullable=chance.random() < 0.45),
        TableColumn("day", "DATE"),
        TableColumn("flag", "BOOLEAN"),
    ]
    columns += chance.sample(others, chance.randint(0, 3))
    chance.shuffle(columns)
    return tuple(columns), "p" if chance.random() < 0.7 else None


def _insert_step(chance: random.Random, table: Table) -> Step:
    step = _step(chance, table.columns)
    statement = insert_rows(chance, table.columns, step.source_columns, table.partition)
    return replace(step, statement=statement)


def _step(
    chance: random.Random, target: tuple[TableColumn, ...], merge_share: float = MERGE_SHARE
) -> Step:
    columns = [TableColumn(column.name, column.type) for column in target if column.name != "id"]
    key = TableColumn("id", chance.choice(["INT", "INT", "INT", "BIGINT"]))
    columns += [key, TableColumn("op", "STRING"), BIG]
    chance.shuffle(columns)
    rows = _rows(chance, columns, _source_keys(chance, key))
    aliases = chance.choice([("t", "s"), ("target", "src")])
    make = merge if chance.random() < merge_share else dml
    statement = make(chance, target, columns)
    if not isinstance(statement, Merge) and chance.random() < _SPOILED_SHARES[type(statement)]:
        statement = spoiled(chance, statement, target)
    form = chance.choice(FORMS)
    shout = chance.random() < 0.5
    return Step(tuple(columns), tuple(rows), statement, aliases, shout, form)


def _source_keys(chance: random.Random, key: TableColumn) -> list[int]:
    """Keys of a window, so that files can be left out; none, some or many occur twice."""
    width = chance.choice([5, 10, 20, _KEYS, _KEYS])
    low = chance.randint(-5, _KEYS + 5 - width)
    window = range(low, low + width)
    keys = chance.sample(window, min(width, chance.choice(_SIZES)))
    kind = chance.choice(["unique", "unique", "few", "few", "many", "many"])
    if kind == "few" and keys:
        keys += chance.choices(keys, k=chance.randint(1, 2))
    if kind == "many":
        keys = chance.choices(window, k=len(keys))
    if key.type == "BIGINT":
        # Cut to 32 bits it would be a key of the target.
        keys = [each + 2**32 if chance.random() < 0.05 else each for each in keys]
    return keys


def _rows(chance: random.Random, columns: Sequence[TableColumn], keys: Sequence[int]) -> list[Row]:
    null_keys = _NULL_SHARE if chance.random() < 0.4 else 0
    # Values of a column of the target that is not nullable may be NULL in the source.
    nulls = {column for column in columns if column.nullable and chance.random() < 0.6}
    rows = []
    for key in keys:
        values = {column.name: _value(chance, column, column in nulls) for column in columns}
        is_null = chance.random() < null_keys
        rows.append(values | {"id": None if is_null else key})
    return rows


def _value(chance: random.Random, column: TableColumn, nulls: bool) -> Value:
    if nulls and chance.random() < _NULL_SHARE:
        return None
    known = [7, 8, 9, BEYOND_INT] if column.name == BIG.name else VALUES[TYPES[column.type]]
    return chance.choice(known)
