"""What Paimon's merge engines make of the records of each key, record by record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spark_jobs.connectors.paimon.keyed.merge_engines import KeyedSchema, MergeEngine
from tests.connectors.paimon.keyed.random_sections import AFTER, INSERT, Key, Record, Row, key_of

Fold = Callable[[Any, Any], Any]


def _valid(fold: Fold) -> Fold:
    """``fold``, which ignores NULLs."""

    def folded(old: Any, new: Any) -> Any:
        if old is None or new is None:
            return new if old is None else old
        return fold(old, new)

    return folded


FOLDS: Mapping[str, Fold] = {
    "last_value": lambda _, new: new,
    "last_non_null_value": _valid(lambda _, new: new),
    "first_value": lambda old, _: old,
    "first_non_null_value": _valid(lambda old, _: old),
    "first_not_null_value": _valid(lambda old, _: old),
    "sum": _valid(lambda old, new: old + new),
    "max": _valid(max),
    "min": _valid(min),
    "bool_and": _valid(lambda old, new: old and new),
    "bool_or": _valid(lambda old, new: old or new),
}


class MergedRow:
    """A row with its sequence number and the record that says where it is."""

    def __init__(self, row: Row, number: int, place: int) -> None:
        self.row, self.number, self.place = row, number, place


def merged_rows(schema: KeyedSchema, records: Iterable[Record]) -> dict[Key, MergedRow]:
    """The rows of a section in key order."""
    by_key: dict[Key, list[Record]] = defaultdict(list)
    for record in records:
        by_key[key_of(schema, record.row)].append(record)
    found = {}
    for key in sorted(by_key):
        members = sorted(by_key[key], key=lambda each: _age(schema.engine, each))
        kept = members[0] if schema.engine.kind == "first-row" else members[-1]
        if kept.kind in (INSERT, AFTER):
            number = max(each.number for each in members)
            row = _merged(schema, [each.row for each in members])
            found[key] = MergedRow(row, number, kept.place)
    return found


def _merged(schema: KeyedSchema, rows: Sequence[Row]) -> Row:
    engine = schema.engine
    if engine.kind == "first-row":
        return rows[0]
    if engine.kind == "deduplicate":
        return rows[-1]
    merged = dict(rows[0])
    for row in rows[1:]:
        for name, value in merged.items():
            merged[name] = FOLDS[_function(engine, name)](value, row[name])
    return merged


def _function(engine: MergeEngine, name: str) -> str:
    if engine.kind == "partial-update":
        return "last_non_null_value"
    is_sequence = name in engine.sequence_fields
    return "last_value" if is_sequence else engine.functions.get(name, "last_non_null_value")


def _age(engine: MergeEngine, record: Record) -> tuple[Any, ...]:
    """NULL is older than any value."""
    ages = [_age_of(record.row[name], engine) for name in engine.sequence_fields]
    return (*ages, record.number)


def _age_of(value: Any, engine: MergeEngine) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    return (1, _Reversed(value)) if engine.sequence_descending else (1, value)


class _Reversed:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and self.value == other.value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)

    __hash__ = None  # type: ignore[assignment]
