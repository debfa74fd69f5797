"""Counts of change rows by clause and, in a dry run, by the partitions of their rows.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contract.partition_names import partition_name
from spark_jobs.spi import rows

_KIND: Final = f"{rows.RESERVED_PREFIX}kind"
_FILE: Final = f"{rows.RESERVED_PREFIX}file"
INSERTED: Final = "inserted"
UPDATED: Final = "updated"
DELETED: Final = "deleted"
# Of split UPDATEs: they count as updated where they arrive.
LEFT: Final = "left"


class Place(NamedTuple):
    """Where rows are: in the file of an ordinal, or in a partition of this name."""

    ordinal: int | None
    partition: str


@dataclass(frozen=True, slots=True)
class Placement:
    """How a change row tells its partition. Picklable.

    ``fields`` are the table's partition fields, by the columns of change rows that hold their
    values. UPDATE and DELETE rows tell their file instead, in the field ``file`` of their row id,
    unless that is None.
    """

    fields: Mapping[str, str]
    file: str | None


@dataclass(slots=True)
class ChangeCounts:
    """Target rows by clause number, and by place and outcome."""

    by_clause: Counter[int] = field(default_factory=Counter)
    by_place: Counter[tuple[Place, str]] = field(default_factory=Counter)

    def count(self, batch: pa.RecordBatch, placement: Placement | None) -> None:
        """Add the rows of a checked batch; a split UPDATE counts once, by its INSERT half."""
        operation, split = batch.column(rows.OPERATION), batch.column(rows.FROM_UPDATE)
        is_half = pc.and_(pc.equal(operation, rows.DELETE), split)
        counted = batch if is_half.true_count == 0 else batch.filter(pc.invert(is_half))
        cases = counted.column(rows.CASE_NUMBER).to_numpy(zero_copy_only=False)
        self.by_clause.update(dict(enumerate(np.bincount(cases).tolist())))
        if placement is None:
            return
        named = counted
        if placement.file is not None:
            is_insert = pc.equal(counted.column(rows.OPERATION), rows.INSERT)
            self._count_in_files(counted.filter(pc.invert(is_insert)), placement.file)
            self._count_in_files(batch.filter(is_half), placement.file, LEFT)
            named = counted.filter(is_insert)
        elif is_half.true_count:
            self._count_in_partitions(batch.filter(is_half), placement.fields, LEFT)
        if named.num_rows:
            self._count_in_partitions(named, placement.fields)

    def _count_in_files(self, batch: pa.RecordBatch, file: str, told: str = "") -> None:
        ordinals = pc.struct_field(batch.column(rows.ROW_ID), file)
        for (ordinal,), kind, count in _grouped(batch, {_FILE: ordinals}):
            self.by_place[Place(ordinal, ""), told or kind] += count

    def _count_in_partitions(
        self, batch: pa.RecordBatch, fields: Mapping[str, str], told: str = ""
    ) -> None:
        columns = {name: batch.column(each) for name, each in fields.items()}
        for values, kind, count in _grouped(batch, columns):
            name = partition_name(dict(zip(columns, values, strict=True)))
            self.by_place[Place(None, name), told or kind] += count

    def to_document(self) -> dict[str, Any]:
        """The counts as JSON data."""
        places = [[*place, kind, count] for (place, kind), count in self.by_place.items()]
        return {"clauses": list(self.by_clause.items()), "places": places}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> ChangeCounts:
        """The counts that ``to_document`` returned."""
        places = {(Place(*each[:2]), each[2]): each[3] for each in document["places"]}
        return cls(Counter(dict(document["clauses"])), Counter(places))


def _grouped(
    batch: pa.RecordBatch, columns: Mapping[str, pa.Array]
) -> Iterator[tuple[list[Any], str, int]]:
    """Each combination of values in ``columns`` with an outcome, and how many rows have it."""
    split = batch.column(rows.FROM_UPDATE)
    operation = pc.if_else(split, rows.UPDATE, batch.column(rows.OPERATION))
    table = pa.table({**columns, _KIND: operation})
    groups = table.group_by([*columns, _KIND]).aggregate([([], "count_all")])
    kinds = {rows.INSERT: INSERTED, rows.UPDATE: UPDATED, rows.DELETE: DELETED}
    for row in groups.to_pylist():
        yield [row[name] for name in columns], kinds[row[_KIND]], row["count_all"]
