"""Which parts of a table are compacted, in which order and groups, and what became of them.

Driver only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, NamedTuple

import pyarrow as pa

from spark_jobs.contract.compaction import CompactedPartition, CompactSpec
from spark_jobs.contract.compaction_order import SortTerm, resolved_terms
from spark_jobs.contract.partition_names import partition_key, partition_text
from spark_jobs.contract.sizes import parse_size
from spark_jobs.datafiles.row_orders import sorted_by, z_ordered
from spark_jobs.errors import ErrorCode, InternalError
from spark_jobs.spi.compaction import CompactionGroup, CompactionPart, CompactionPlan
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import RowOrder


def asked_terms(table: TableHandle, spec: CompactSpec) -> tuple[SortTerm, ...]:
    """The terms of ``sort_by`` or ``zorder_by``; none if neither is given.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, TYPE_MISMATCH.
    """
    if spec.asked_order is None:
        return ()
    columns = (*table.columns, *table.opaque_columns)
    types = {each.name: each.type for each in columns}
    return resolved_terms(*spec.asked_order, str(table.name), types)


def asked_order(table: TableHandle, spec: CompactSpec, schema: pa.Schema) -> RowOrder | None:
    """The order of rows with ``schema``; None if none is asked for. Raises as ``asked_terms``."""
    terms = asked_terms(table, spec)
    if not terms:
        return None
    return z_ordered(terms) if spec.zorder_by else sorted_by(schema, terms)


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """Files of one ``partition`` that one task turns into new ones.

    An empty one of a table that has partitions: the files are in none of them.
    ``files`` are their numbers in the table. ``native`` is what the task gets. ``expected`` says
    what is read and estimates what is written; it has no ``values``.
    """

    partition: tuple[Any, ...]
    files: tuple[int, ...]
    native: Any = field(repr=False, compare=False)
    expected: CompactedPartition


class GroupSize(NamedTuple):
    """How much is published at once at most, so that progress stays if the job is killed."""

    bytes: int = 8 * 2**30
    partitions: int = 200


DEFAULT_SIZE: Final = GroupSize()


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one run compacts at most: bytes to read, and partitions; None: all."""

    bytes: int | None = None
    partitions: int | None = None

    @classmethod
    def of(cls, spec: CompactSpec) -> Limits:
        """The limits of a statement."""
        size = spec.max_bytes
        return cls(None if size is None else parse_size(size), spec.max_partitions)


class _Partition(NamedTuple):
    """The parts of one partition, and what they do together."""

    key: str
    parts: Sequence[PlannedPart]
    expected: CompactedPartition

    @property
    def rank(self) -> tuple[int, int, str]:
        """The order of partitions: those come first where most files go, then the largest."""
        expected = self.expected
        saved = expected.files_before - expected.files_after
        return -saved, -expected.bytes_before, self.key


def planned_groups(
    partition_keys: Sequence[str],
    parts: Iterable[PlannedPart],
    limits: Limits,
    size: GroupSize = DEFAULT_SIZE,
) -> CompactionPlan:
    """``parts`` in groups, the worst partitions first; at least one part is within the limits."""
    of_partition: dict[tuple[object, ...], list[PlannedPart]] = defaultdict(list)
    for part in parts:
        of_partition[part.partition].append(part)
    partitions = sorted(
        (
            _partition(dict(zip(partition_keys if values else (), values, strict=True)), found)
            for values, found in of_partition.items()
        ),
        key=lambda each: each.rank,
    )
    within, left = _within(partitions, limits)
    return CompactionPlan(tuple(map(_group, _grouped(within, size))), left)


def texts_of(values: Mapping[str, object]) -> dict[str, str | None]:
    """The text of each value, as in ``CompactedPartition.values``."""
    return {name: partition_text(value) for name, value in values.items()}


def _partition(values: Mapping[str, object], parts: Sequence[PlannedPart]) -> _Partition:
    expected = (part.expected for part in parts)
    total = reduce(CompactedPartition.plus, expected, CompactedPartition(texts_of(values)))
    return _Partition(partition_key(values), parts, total)


def _within(
    partitions: Sequence[_Partition], limits: Limits
) -> tuple[list[tuple[_Partition, PlannedPart]], int]:
    """The parts within the limits, and the number of partitions of which some are beyond them."""
    taken: list[tuple[_Partition, PlannedPart]] = []
    size = 0
    for number, partition in enumerate(partitions):
        if limits.partitions is not None and number >= limits.partitions:
            return taken, len(partitions) - number
        for part in partition.parts:
            size += part.expected.bytes_before
            if taken and limits.bytes is not None and size > limits.bytes:
                return taken, len(partitions) - number
            taken.append((partition, part))
    return taken, 0


def _grouped(
    parts: Iterable[tuple[_Partition, PlannedPart]], size: GroupSize
) -> Iterator[list[tuple[_Partition, PlannedPart]]]:
    group: list[tuple[_Partition, PlannedPart]] = []
    keys: set[str] = set()
    total = 0
    for partition, part in parts:
        keys.add(partition.key)
        total += part.expected.bytes_before
        if group and (total > size.bytes or len(keys) > size.partitions):
            yield group
            group, keys, total = [], {partition.key}, part.expected.bytes_before
        group.append((partition, part))
    if group:
        yield group


def _group(parts: Sequence[tuple[_Partition, PlannedPart]]) -> CompactionGroup:
    numbered = [
        CompactionPart(number, partition.key, part.expected.bytes_before, part.native)
        for number, (partition, part) in enumerate(parts)
    ]
    expected: dict[str, CompactedPartition] = {}
    for partition, part in parts:
        before = expected.get(partition.key, CompactedPartition(partition.expected.values))
        expected[partition.key] = before.plus(part.expected)
    return CompactionGroup(tuple(numbered), expected)


def require_each_file_once(parts: Iterable[Sequence[Hashable]]) -> None:
    """Check that no two parts, of which each is the names of its files, replace the same file.

    Raises:
        InternalError: two parts do, or one replaces no file.
    """
    seen_names: set[Hashable] = set()
    for part in parts:
        names = set(part)
        if not names or len(names) != len(part) or names & seen_names:
            raise InternalError(
                ErrorCode.INTERNAL_ERROR,
                "A file was compacted by two tasks, or a task compacted none.",
                "This is a defect: report it with the statement.",
            )
        seen_names |= names


def by_partition(
    done: Iterable[tuple[str, CompactedPartition]],
) -> dict[str, CompactedPartition]:
    """What parts did together, by the key of their partition."""
    partitions: dict[str, CompactedPartition] = {}
    for key, did in done:
        partitions[key] = partitions[key].plus(did) if key in partitions else did
    return partitions
