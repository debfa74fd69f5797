"""Arrays from Spark get the exact type of a file's column, or a clear error."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.datafiles.conform import conform
from spark_jobs.errors import DataError, ErrorCode
from tests.datafiles.strategies import types


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_values_are_kept_whatever_the_names_inside_and_the_slice(data: st.DataObject) -> None:
    kind, values = data.draw(types())
    rows = data.draw(st.lists(st.none() | values, max_size=6))
    array = pa.array(rows, kind)
    start = data.draw(st.integers(0, len(rows)))

    found = conform(array.slice(start), pa.field("c", renamed(kind)))

    found.validate(full=True)
    assert found.type == renamed(kind)
    assert repr(found.to_pylist()) == repr(array.slice(start).to_pylist())


def renamed(kind: pa.DataType) -> pa.DataType:
    """The same type as another writer would spell it."""
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(renamed(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, pa.field("item", renamed(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("array_element", renamed(kind.value_type)))
    return kind


def test_a_null_where_none_may_be_names_the_column() -> None:
    field = pa.field("a", pa.int64(), nullable=False)

    with pytest.raises(DataError, match="Column a must not be NULL, but 2") as raised:
        conform(pa.array([1, None, None]), field)

    assert raised.value.code is ErrorCode.NOT_NULL_VIOLATION


def test_a_null_inside_a_value_names_the_path() -> None:
    point = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    field = pa.field("points", pa.list_(pa.field("element", point)))
    array = pa.array([[{"x": 1}, {"x": None}]], pa.list_(pa.struct([("x", pa.int32())])))

    with pytest.raises(DataError, match=r"points\.element\.x"):
        conform(array, field)


def test_a_null_struct_may_have_required_fields() -> None:
    field = pa.field("s", pa.struct([pa.field("x", pa.int32(), nullable=False)]))
    array = pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))

    assert conform(array, field).to_pylist() == [{"x": 1}, None]


def test_a_null_element_is_refused_where_elements_are_required() -> None:
    field = pa.field("l", pa.list_(pa.field("element", pa.int32(), nullable=False)))

    with pytest.raises(DataError, match=r"l\.element"):
        conform(pa.array([[1, None]], pa.list_(pa.int32())), field)


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        ([2**40], pa.int64(), pa.int32()),
        ([2**62], pa.timestamp("us"), pa.timestamp("ns")),
        (["x"], pa.string(), pa.int32()),
    ],
)
def test_a_value_that_does_not_fit_names_the_column(
    values: list[Any], source: pa.DataType, target: pa.DataType
) -> None:
    with pytest.raises(DataError, match="Column c of type") as raised:
        conform(pa.array(values, source), pa.field("c", target))

    assert raised.value.code is ErrorCode.VALUE_NOT_STORABLE


@pytest.mark.parametrize("zone", [None, "Asia/Kathmandu"])
def test_a_coarser_timestamp_is_floored(zone: str | None) -> None:
    micros = pa.array([-1, 1_999_999], pa.int64()).cast(pa.timestamp("us", zone))
    target = pa.timestamp("s", None if zone is None else "UTC")

    assert conform(micros, pa.field("c", target)).cast(pa.int64()).to_pylist() == [-1, 1]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.map_(pa.int32(), pa.int32())])
def test_an_empty_nested_list_without_offsets_as_java_sends_it(kind: pa.DataType) -> None:
    # What lies behind the empty buffer is none of its values.
    no_offsets = pa.array([1000], pa.int32()).buffers()[1].slice(0, 0)
    values = pa.array([], pa.int32())
    if pa.types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
        values = pa.StructArray.from_arrays([values, values], fields=fields)
    empty = pa.Array.from_buffers(kind, 0, [None, no_offsets], children=[values])
    struct = pa.StructArray.from_arrays([empty], ["x"])
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), struct)

    found = conform(lists, pa.field("c", lists.type))

    found.validate(full=True)
    assert pa.table({"c": found}).nbytes < 100
    assert found.to_pylist() == [[], []]
