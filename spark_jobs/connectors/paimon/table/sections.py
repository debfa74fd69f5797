"""Which data files have to be read together: sections of a bucket, ranges of the same rows.

A section is a set of files whose ranges of keys overlap, directly or through others of them
(Paimon's ``IntervalPartition``). Files that batch readers do not see yet are apart.

A *range* is a run of row ids. Its *anchor* is the oldest of its files; each newer one holds some
columns of all its rows, in the same order. A column's values are in the newest file that has it.
After Paimon's ``DataEvolutionSplitRead``, which also makes the anchor the file of the deletion
vector.

Driver only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

from spark_jobs.connectors.paimon.format.manifest_entries import POSTPONED, BucketKey, bucket_key_of
from spark_jobs.connectors.paimon.library.data_files import KeyRange, key_range
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_formats import is_parquet
from spark_jobs.errors import CatalogError, ErrorCode

_Located = tuple[str, Any]


class Unit(NamedTuple):
    """Files that are read together: their indexes among all data files of the table.

    ``is_pending``: batch readers do not see them yet.
    """

    files: tuple[int, ...]
    is_pending: bool = False


def units(located: Sequence[_Located], *, hides_level_0: bool) -> tuple[Unit, ...]:
    """The units of a table with a primary key: bucket by bucket, in key order.

    Raises:
        CatalogError: METADATA_UNREADABLE: files of a level above 0 overlap.
    """
    buckets: dict[BucketKey, list[int]] = defaultdict(list)
    for index, (_, entry) in enumerate(located):
        buckets[bucket_key_of(entry)].append(index)
    all_units: list[Unit] = []
    for place, indexes in buckets.items():
        hidden = hides_level_0 or place.bucket == POSTPONED
        pending = [n for n in indexes if hidden and not located[n][1].file.level]
        visible = [n for n in indexes if n not in set(pending)]
        all_units += [Unit(files) for files in _sections(located, visible)]
        if pending:
            all_units.append(Unit(tuple(pending), is_pending=True))
    return tuple(all_units)


def _sections(located: Sequence[_Located], indexes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    ranges = {index: key_range(located[index][1]) for index in indexes}
    _require_levels(located, ranges)
    section: list[int] = []
    end: tuple[Any, ...] = ()
    for index in sorted(indexes, key=lambda each: ranges[each].first):
        if section and ranges[index].first > end:
            yield tuple(sorted(section))
            section = []
        end = max(end, ranges[index].last) if section else ranges[index].last
        section.append(index)
    if section:
        yield tuple(sorted(section))


def _require_levels(located: Sequence[_Located], ranges: dict[int, KeyRange]) -> None:
    """Check that the files of each level above 0 do not overlap, which readers rely on."""
    before: dict[int, int] = {}
    for index in sorted(ranges, key=lambda each: ranges[each].first):
        level = located[index][1].file.level
        if level and level in before and ranges[before[level]].overlaps(ranges[index]):
            names = [located[each][1].file.file_name for each in (before[level], index)]
            raise CatalogError(
                ErrorCode.METADATA_UNREADABLE,
                f"Data files {names[0]} and {names[1]} of level {level} have overlapping keys, so "
                "engines do not agree on their rows.",
                "Look for who wrote them; this statement changed nothing.",
            )
        before[level] = index


class _Named(Protocol):
    """A column of the table."""

    @property
    def name(self) -> str:
        """Its name."""


class FileColumns:
    """Which of the table's ``columns`` data files hold, under today's names, in the table's order.

    ``mapping_of`` finds the columns in the file of a manifest entry; None: it has the table's.
    """

    def __init__(
        self,
        columns: Sequence[_Named],
        mapping_of: Callable[[Any], tuple[FieldMapping, ...] | None],
    ) -> None:
        self._names = tuple(column.name for column in columns)
        self._mapping_of = mapping_of
        self._held: dict[tuple[Any, ...], tuple[str, ...]] = {}

    def held(self, entry: Any) -> tuple[str, ...]:
        """The columns of a file: those of its schema, or the part that its entry names."""
        names = entry.file.write_cols
        return self._among(entry, None if names is None else tuple(names))

    def of_schema(self, entry: Any) -> tuple[str, ...]:
        """The columns of the schema that a file was written with."""
        return self._among(entry, None)

    def _among(self, entry: Any, written: tuple[str, ...] | None) -> tuple[str, ...]:
        key = (entry.file.schema_id, is_parquet(entry.file.file_name), written)
        if key not in self._held:
            stored = self._stored(entry)
            self._held[key] = tuple(
                name
                for name, source in zip(self._names, stored, strict=True)
                if source is not None and (written is None or source in written)
            )
        return self._held[key]

    def _stored(self, entry: Any) -> list[str | None]:
        """The name of each of the table's columns in the file's schema."""
        mapping = self._mapping_of(entry)
        if mapping is None:
            return list(self._names)
        return [None if each.source is None else each.source.name for each in mapping]


def range_units(
    located: Sequence[_Located], columns: FileColumns, next_row_id: int | None
) -> tuple[Unit, ...]:
    """The ranges of a table, by their ids; the files of each from its anchor to the newest.

    Raises:
        CatalogError: METADATA_UNREADABLE: ranges overlap, a file has another number of rows than
            its range, or a column of the rows is in no file; names the files.
    """
    ordered = sorted(range(len(located)), key=lambda index: _order(located[index][1]))
    units: list[Unit] = []
    end = 0
    for group in _groups(located, ordered):
        entries = [located[index][1] for index in group]
        first = entries[0].file
        if first.first_row_id < end:
            before = located[units[-1].files[0]][1]
            _refuse("have overlapping ranges of row ids", [before, *entries])
        end = first.first_row_id + first.row_count
        _require_one_range(entries)
        _require_all_columns(entries, columns)
        units.append(Unit(group))
    if next_row_id is not None and end > next_row_id:
        entries = [located[index][1] for index in units[-1].files]
        _refuse(f"have row ids from {next_row_id} on, which new rows will get", entries)
    return tuple(units)


def _order(entry: Any) -> tuple[int, int, str]:
    """Ranges by their first id, and the files of a range from its anchor to the newest."""
    file = entry.file
    return file.first_row_id, file.max_sequence_number, file.file_name


def _groups(located: Sequence[_Located], ordered: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The indexes of files with the same first row id."""
    group: list[int] = []
    for index in ordered:
        first = located[index][1].file.first_row_id
        if group and first != located[group[0]][1].file.first_row_id:
            yield tuple(group)
            group = []
        group.append(index)
    if group:
        yield tuple(group)


def _require_one_range(entries: Sequence[Any]) -> None:
    if len({entry.file.row_count for entry in entries}) > 1:
        _refuse("have the same first row id, but not the same number of rows", entries)
    if len({bucket_key_of(entry) for entry in entries}) > 1:
        _refuse("have the same row ids, but are in several partitions or buckets", entries)


def _require_all_columns(entries: Sequence[Any], columns: FileColumns) -> None:
    """Check that each column of the rows is in a file, and that one of them is the newest."""
    if len(entries) == 1 and entries[0].file.write_cols is None:
        return
    entries_by_column: dict[str, Any] = {}
    for entry in entries:
        for name in columns.held(entry):
            other = entries_by_column.get(name)
            number = entry.file.max_sequence_number
            if other is not None and other.file.max_sequence_number == number:
                _refuse(f"hold the same rows' {name}, and none is newer", [other, entry])
            entries_by_column[name] = entry
    missing = [name for name in columns.of_schema(entries[0]) if name not in entries_by_column]
    if missing:
        _refuse(f"lack the column {missing[0]} of their rows: the range has no anchor", entries)


def _refuse(problem: str, entries: Iterable[Any]) -> NoReturn:
    names = ", ".join(entry.file.file_name for entry in entries)
    raise CatalogError(
        ErrorCode.METADATA_UNREADABLE,
        f"Data files of a table with data evolution {problem}: {names}.",
        "Look for who wrote them, or roll the table back; this statement changed nothing.",
    )
