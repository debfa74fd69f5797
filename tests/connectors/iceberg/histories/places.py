"""The partitions of rows by the current spec, in plain Python, and statements that replace some."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertOverwriteSpec,
    PartitionStatement,
    TruncateTableSpec,
)
from tests.connectors.iceberg.histories.model import Row

_COLUMNS: Final = ("id", "p", "v", "at", "d", "m")


@dataclass(frozen=True)
class Place:
    """A partition field, and the field of the model that it is made of."""

    name: str
    transform: str
    source: str

    def of(self, row: Row) -> Any:
        """The value of a row."""
        value, (kind, _, number) = row.get(self.source), self.transform.partition("[")
        if value is None or kind == "identity":
            return value
        if kind == "bucket":
            return BucketTransform(int(number[:-1])).transform(LongType())(value)
        if kind == "truncate":
            width = int(number[:-1])
            if isinstance(value, Decimal):
                unscaled = int(value * 100)
                return Decimal(unscaled - unscaled % width) / 100
            return value - value % width
        return value[: {"day": 10, "month": 7}[kind]]

    def constant(self, row: Row) -> str:
        """The value of a row as SQL."""
        value = self.of(row)
        if value is None:
            return "NULL"
        if self.transform == "day":
            return f"DATE'{value}'"
        return f"'{value}'" if isinstance(value, str) else str(value)


def places_of(table: Any, columns: Mapping[str, str]) -> list[Place]:
    """The current partition fields; ``columns`` are names by field of the model."""
    fields = {name: each for each, name in columns.items()}
    schema = table.schema()
    return [
        Place(each.name, str(each.transform), fields[schema.find_column_name(each.source_id)])
        for each in table.spec().fields
        if str(each.transform) != "void"
    ]


@dataclass(frozen=True)
class Replacing:
    """A statement, the rows that it inserts, and those that stay."""

    statement: PartitionStatement
    new: list[Row]
    kept: list[Row]


def random_replacing(
    chance: random.Random,
    places: Sequence[Place],
    columns: Mapping[str, str],
    rows: list[Row],
    source: list[Row],
) -> Replacing:
    """A statement that replaces partitions; ``source`` are rows for an overwrite."""
    if chance.random() < 0.4 or not rows:
        names = tuple(columns[each] for each in _COLUMNS)
        statement = InsertOverwriteSpec("s", "dynamic", columns=names)
        gone = {_of(places, each) for each in source}
        kept = [each for each in rows if _of(places, each) not in gone]
        return Replacing(statement, source, kept)
    some = chance.sample(list(places), chance.randrange(1, len(places) + 1))
    likes = [chance.choice(rows), chance.choice(rows)]
    specs = [{each.name: each.constant(row) for each in some} for row in likes]
    if chance.random() < 0.5:
        replacing: PartitionStatement = DropPartitionsSpec(tuple(specs))
    else:
        replacing, likes = TruncateTableSpec(specs[0]), likes[:1]
    gone = {_of(some, each) for each in likes}
    return Replacing(replacing, [], [each for each in rows if _of(some, each) not in gone])


def _of(places: Sequence[Place], row: Row) -> tuple[Any, ...]:
    return tuple(each.of(row) for each in places)
