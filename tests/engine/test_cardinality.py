"""The cardinality rule over the batches of a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.engine.write.cardinality import CardinalityCheck
from spark_jobs.errors import DataError
from spark_jobs.spi import rows
from spark_jobs.spi.writes import Fragment

_ROW_ID = pa.struct([("file", pa.int32()), ("position", pa.int64())])
_Change = tuple[int, int, tuple[int, int] | None]


class Rows:
    """A sink that knows its rows and stores nothing."""

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        return None

    def finish(self) -> list[Fragment]:
        return []

    def abort(self) -> None:
        return None

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        return dict.fromkeys(columns, f"{row_id['file']}-{row_id['position']}")


def batch(changes: Sequence[_Change]) -> pa.RecordBatch:
    operations, cases, ids = zip(*changes, strict=True)
    row_ids = [None if each is None else {"file": each[0], "position": each[1]} for each in ids]
    return pa.RecordBatch.from_pydict(
        {
            rows.OPERATION: pa.array(operations, pa.int8()),
            rows.CASE_NUMBER: pa.array(cases, pa.int32()),
            rows.ROW_ID: pa.array(row_ids, _ROW_ID),
        }
    )


def checked(
    changes: Sequence[_Change], cuts: Sequence[int] = (), *, allows_repeated: bool = False
) -> list[tuple[int, int]]:
    """Operation and position of the rows that pass, with the task's batches cut at ``cuts``."""
    check = CardinalityCheck(Rows(), ["id"], allows_repeated)
    passed = []
    for start, stop in pairwise([0, *cuts, len(changes)]):
        out = check.checked(batch(changes[start:stop]))
        ids = out.column(rows.ROW_ID).to_pylist()
        operations = out.column(rows.OPERATION).to_pylist()
        passed += [(op, each["position"]) for op, each in zip(operations, ids, strict=True) if each]
    return passed


_UPDATED_TWICE: list[_Change] = [
    (rows.UPDATE, 0, (1, 4)),
    (rows.UPDATE, 0, (1, 5)),
    (rows.DELETE, 2, (1, 5)),
    (rows.UPDATE, 0, (2, 5)),
]


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (3,), (1, 2, 3)])
def test_a_row_that_is_changed_twice(cuts: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"clause 1, 3.*id='1-5'"):
        checked(_UPDATED_TWICE, cuts)


def test_equal_positions_of_two_files_are_two_rows() -> None:
    changes: list[_Change] = [(rows.UPDATE, 0, (1, 5)), (rows.UPDATE, 0, (2, 5))]

    assert checked(changes) == [(rows.UPDATE, 5), (rows.UPDATE, 5)]


@pytest.mark.parametrize("cuts", [(), (1,), (2,)])
def test_new_rows_are_never_repeated(cuts: tuple[int, ...]) -> None:
    changes: list[_Change] = [
        (rows.DELETE, 0, (1, 5)),
        (rows.INSERT, 1, None),
        (rows.INSERT, 1, None),
    ]

    assert checked(changes, cuts) == [(rows.DELETE, 5)]


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2)])
def test_repeated_deletes_that_are_allowed_are_one(cuts: tuple[int, ...]) -> None:
    repeated: _Change = (rows.DELETE, 0, (1, 5))
    changes: list[_Change] = [repeated, repeated, repeated, (rows.DELETE, 0, (1, 6))]

    assert checked(changes, cuts, allows_repeated=True) == [(rows.DELETE, 5), (rows.DELETE, 6)]


@pytest.mark.parametrize("cuts", [(), (1,), (2,)])
def test_bare_row_ids_count_as_matches_and_do_not_pass(cuts: tuple[int, ...]) -> None:
    bare: list[_Change] = [(rows.NO_OPERATION, rows.NO_CASE, (1, 4)), (rows.UPDATE, 0, (1, 5))]

    assert checked(bare, cuts[:1] if cuts != (2,) else ()) == [(rows.UPDATE, 5)]
    with pytest.raises(DataError, match=r"by clause 1\)"):
        checked([*bare, (rows.NO_OPERATION, rows.NO_CASE, (1, 5))], cuts)


def test_the_error_names_a_few_rows_each_once() -> None:
    changes: list[_Change] = [(rows.UPDATE, 0, (1, n // 3)) for n in range(30)]

    with pytest.raises(DataError) as raised:
        checked(changes)

    assert raised.value.message.count("id=") == 3
    assert "id='1-0'; id='1-1'; id='1-2'" in raised.value.message
