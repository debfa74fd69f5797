"""Structures in Thrift's compact protocol come back as they were, known or not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.thrift import STRUCT, ThriftError, Value, list_of
from tests.datafiles.parquet_files import layouts
from tests.datafiles.strategies import samples

_INTEGERS = st.integers(-(2**63), 2**63 - 1)


def values() -> st.SearchStrategy[Value]:
    plain = st.one_of(
        st.sampled_from([Value(thrift.TRUE, None), Value(thrift.FALSE, None)]),
        st.integers(-(2**31), 2**31 - 1).map(thrift.i32),
        _INTEGERS.map(thrift.i64),
        st.binary(max_size=200).map(thrift.binary),
        st.binary(min_size=8, max_size=8).map(lambda raw: Value(7, raw)),
        st.lists(_INTEGERS, max_size=20).map(lambda each: list_of(thrift.I64, each)),
        st.lists(st.binary(max_size=3), max_size=20).map(lambda x: list_of(thrift.BINARY, x)),
    )
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            structs(inner).map(thrift.struct),
            st.lists(structs(inner), max_size=20).map(lambda each: list_of(STRUCT, each)),
        ),
        max_leaves=20,
    )


def structs(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[dict[int, Value]]:
    return st.dictionaries(st.integers(1, 300), inner, max_size=6)


@pytest.mark.slow
@given(fields=structs(values()), rest=st.binary(max_size=4))
def test_a_structure_comes_back(fields: dict[int, Value], rest: bytes) -> None:
    raw = thrift.serialize(fields)

    assert thrift.parse(raw + rest) == (fields, len(raw))


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_a_footer_is_written_as_it_was(data: Any) -> None:
    table = data.draw(samples()).table
    sink = pa.BufferOutputStream()
    data.draw(layouts(table.schema, table.num_rows)).write(table, sink)
    whole = sink.getvalue().to_pybytes()
    length = int.from_bytes(whole[-8:-4], "little")
    raw = whole[-8 - length : -8]

    fields, end = thrift.parse(raw)

    assert end == length
    assert thrift.serialize(fields) == raw
    assert pq.read_metadata(pa.BufferReader(whole)).num_rows == fields[3].data


def test_lists_of_booleans_and_fields_far_apart_come_back() -> None:
    # Field 1: list of three booleans; field 200: a byte.
    raw = bytes([0x19, 0x31, 1, 2, 1, 0x03, 0x90, 0x03, 7, 0])

    fields, end = thrift.parse(raw)

    assert sorted(fields) == [1, 200]
    assert (end, thrift.serialize(fields)) == (len(raw), raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x15",  # an integer without its bytes
        b"\x18\x05ab",  # a text that is too short
        b"\x1b\x00\x00",  # a map
        b"\x1c" * 5000,  # structures in structures
    ],
)
def test_what_is_no_structure_is_refused(raw: bytes) -> None:
    with pytest.raises(ThriftError):
        thrift.parse(raw)
