"""The partitions of a table's newest snapshot, by page and by day."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal

from airflow_provider_merge.metadata.model import CompactionFacts, PartitionFacts, TableSchema
from airflow_provider_merge.ui.answers import Day, Days, Partitions
from airflow_provider_merge.ui.opened import OpenTable
from airflow_provider_merge.ui.told import told_partition

SortKey = Literal["name", "rows", "files", "size", "small_files", "marked_share", "last_change"]

# A day, or an hour of one.
_DAY: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(-[0-9]{2})?")
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE")
_MOST_DAYS: Final = 1100

Compaction = Mapping[str, CompactionFacts] | None


@dataclass(frozen=True, slots=True)
class PartitionQuery:
    """Which page: of the partitions whose name has ``search`` in it, by ``sort``."""

    search: str = ""
    sort: SortKey = "name"
    descending: bool = False
    offset: int = 0
    limit: int = 100


def read_partitions(table: OpenTable, query: PartitionQuery) -> Partitions:
    """A page of partitions, and the sums of all that the search finds."""
    compaction = table.known_compaction()
    wanted = query.search.lower()
    matching = [each for each in table.partitions() if wanted in each.name.lower()]
    key = _KEYS[query.sort] or _by_values(table.view.schema)
    known = [each for each in matching if key(each, compaction) is not None]
    unknown = [each for each in matching if key(each, compaction) is None]
    known.sort(key=lambda each: key(each, compaction), reverse=query.descending)
    page = [*known, *unknown][query.offset : query.offset + query.limit]
    own = compaction or {}
    latest = table.view.latest
    return Partitions(
        snapshot_id=str(latest.snapshot_id) if latest else None,
        total=len(matching),
        rows=_sum(each.rows for each in matching),
        files=sum(each.files for each in matching),
        size=sum(each.size for each in matching),
        small_files=_sum(_small_files(each, compaction) for each in matching),
        partitions=[told_partition(each, own.get(each.name)) for each in page],
    )


def read_days(table: OpenTable) -> Days:
    """Rows, files and bytes of the newest days, by the first partition column of dates."""
    partitions = table.partitions()
    column = next(
        (key for key in table.view.schema.partition_keys if _is_days(partitions, key)), None
    )
    if column is None:
        return Days(column=None, days=[])
    by_day: dict[str, list[PartitionFacts]] = defaultdict(list)
    for partition in partitions:
        value = partition.values.get(column)
        if value is not None:
            by_day[value[:10]].append(partition)
    days = [
        Day(
            day=day,
            rows=_sum(each.rows for each in by_day[day]),
            files=sum(each.files for each in by_day[day]),
            size=sum(each.size for each in by_day[day]),
        )
        for day in sorted(by_day)[-_MOST_DAYS:]
    ]
    return Days(column=column, days=days)


def _by_values(schema: TableSchema) -> Callable[[PartitionFacts, Compaction], Any]:
    """The values of partitions in the order of their types; NULL comes last."""
    types = {column.name: column.type for column in schema.columns}
    # A transform, such as bucket, has no type of its own here: where it can, it counts as a number.
    are_numbers = [
        types.get(key, _NUMBERS[0]).startswith(_NUMBERS) for key in schema.partition_keys
    ]
    keys = list(zip(schema.partition_keys, are_numbers, strict=True))
    return lambda each, _: [_sortable(each.values.get(key), number) for key, number in keys]


def _sortable(value: str | None, is_number: bool) -> tuple[int, Decimal, str]:
    """A number, else a text, else nothing."""
    if value is None:
        return 2, Decimal(), ""
    try:
        number = Decimal(value) if is_number else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite():
        return 1, Decimal(), value
    return 0, number, value


def _is_days(found: Iterable[PartitionFacts], column: str) -> bool:
    values = {each.values.get(column) for each in found} - {None}
    return bool(values) and all(_DAY.fullmatch(value or "") for value in values)


def _small_files(each: PartitionFacts, compaction: Compaction) -> int | None:
    found = (compaction or {}).get(each.name)
    return None if found is None else found.small_files


def _marked_share(each: PartitionFacts, compaction: Compaction) -> float | None:
    found = (compaction or {}).get(each.name)
    return None if found is None else found.marked_share


# By name: by the values, which depends on their types.
_KEYS: Final[Mapping[SortKey, Callable[[PartitionFacts, Compaction], Any] | None]] = {
    "name": None,
    "rows": lambda each, _: each.rows,
    "files": lambda each, _: each.files,
    "size": lambda each, _: each.size,
    "small_files": _small_files,
    "marked_share": _marked_share,
    "last_change": lambda each, _: each.last_file_millis,
}


def _sum(counts: Iterable[int | None]) -> int | None:
    found = list(counts)
    return None if None in found else sum(count or 0 for count in found)
