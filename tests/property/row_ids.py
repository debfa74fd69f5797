"""The ids of rows in tables that track them, as Paimon's Java library reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tests.judge.judge import read_with_java
from tests.oracle.expressions import Row

if TYPE_CHECKING:
    from tests.property.paimon_tables import PaimonTable

ID, NUMBER = "_ROW_ID", "_SEQUENCE_NUMBER"
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as the oracle has times without a zone


def tracked_rows(table: PaimonTable) -> list[Row]:
    """All rows with their ids and sequence numbers, which the oracle carries along.

    Java 1.4 does not know data evolution with deletion vectors.
    """
    if table.kind.evolves_columns and table.kind.marks_rows:
        return table.rows(ID, NUMBER)
    types = {each.name: each.type for each in table.columns}
    rows = read_with_java(table.warehouse.path, table.full_name, tracked=True)
    return [{name: _value(each, types.get(name)) for name, each in row.items()} for row in rows]


def _value(judged: Any, type_: str | None) -> Any:
    """The judge's value as the oracle has it."""
    if judged is not None and type_ == "TIMESTAMP_NTZ":
        return _EPOCH + timedelta(microseconds=judged // 1000)
    return float(judged) if isinstance(judged, float) else judged


def checked_rows(
    table: PaimonTable, expected: Sequence[Row], next_id: int, snapshot_id: int | None
) -> list[Row]:
    """The rows after a statement, which should be ``expected``; new rows have no id there.

    ``next_id`` is the first id that no row had before the statement.
    """
    found = tracked_rows(table)
    assert len({row[ID] for row in found}) == len(found), "two rows have the same id"
    old = [row for row in found if row[ID] < next_id]
    new = [row for row in found if row[ID] >= next_id]
    names = [column.name for column in table.columns]
    assert _values(old, [*names, ID]) == _values([r for r in expected if ID in r], [*names, ID])
    assert _values(new, names) == _values([r for r in expected if ID not in r], names)
    before = {row[ID]: row for row in expected if ID in row}
    for row in found:
        was = before.get(row[ID])
        # An UPDATE may leave the values as they were.
        numbers = {snapshot_id} if was is None else {snapshot_id, was[NUMBER]}
        assert row[NUMBER] in numbers, (row, was)
    return found


def _values(rows: Sequence[Row], names: Sequence[str]) -> Counter[str]:
    return Counter(repr([row[name] for name in names]) for row in rows)
