"""Which text of change rows is checked: what the clause that applies gives, at any depth."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_jobs.engine.write.text_check import Path, TextCheck, wrong_text
from spark_jobs.errors import DataError
from spark_jobs.spi import rows

WRONG = b"a\xff"


def texts(*values: bytes) -> pa.Array:
    """Strings with any bytes."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values).buffers())


BAD = texts(b"ok", WRONG)
LIST = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), BAD)
MAP = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), BAD, pa.array([1, 2]))
STRUCT = pa.StructArray.from_arrays([LIST, pa.array(["x", "y"])], ["a", "b"])
SECOND = {"text": BAD, "list": LIST, "map": MAP, "struct": STRUCT}


@pytest.mark.parametrize("kind", SECOND)
def test_text_at_any_depth(kind: str) -> None:
    values = SECOND[kind]

    assert wrong_text(values) == WRONG
    assert wrong_text(values.slice(0, 1)) is None
    assert wrong_text(values.slice(1)) == WRONG


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["é", None, ""]),
        pa.array([WRONG]),
        pa.array([None], pa.string()),
        pa.array([], pa.list_(pa.string())),
        pa.array([[], None], pa.map_(pa.string(), pa.string())),
        pa.array(["x"]).dictionary_encode(),
    ],
    ids=str,
)
def test_text_that_is_right(values: pa.Array) -> None:
    assert wrong_text(values) is None


def changes(operation: int, case: int) -> pa.RecordBatch:
    """Two rows; the second one has other bytes in ``s`` and in ``st.a``."""
    return pa.RecordBatch.from_pydict(
        {
            rows.OPERATION: pa.array([rows.UPDATE, operation], pa.int8()),
            rows.CASE_NUMBER: pa.array([0, case], pa.int32()),
            "s": BAD,
            "st": STRUCT,
        }
    )


@pytest.mark.parametrize(
    ("given", "operation", "case", "place"),
    [
        ({("s",): {1}}, rows.UPDATE, 1, "clause 2: column s"),
        ({("s",): {0, 1}}, rows.INSERT, 1, "clause 2: column s"),
        ({("st",): {1}}, rows.UPDATE, 1, "clause 2: column st"),
        ({("st", "a"): {1}}, rows.UPDATE, 1, "clause 2: column st.a"),
        ({("st", "b"): {1}}, rows.UPDATE, 1, None),
        ({("s",): {0}}, rows.UPDATE, 1, None),
        ({("s",): {1}}, rows.DELETE, 1, None),
        ({("elsewhere",): {1}}, rows.UPDATE, 1, None),
        ({}, rows.UPDATE, 1, None),
    ],
)
def test_what_a_clause_gives(
    given: dict[Path, set[int]], operation: int, case: int, place: str | None
) -> None:
    check = TextCheck(
        ("clause 1", "clause 2"), {path: frozenset(cases) for path, cases in given.items()}
    )

    if place is None:
        check.require(changes(operation, case))
        return
    with pytest.raises(DataError) as error:
        check.require(changes(operation, case))
    assert error.value.message.startswith(f"{place} string cannot hold bytes")
    assert "'a\\xff'" in error.value.message
