"""The bucket of a row: the same as Paimon's own writers choose."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.connectors.paimon.format.buckets import BucketFunction

BUCKETS = 1009
_EARLY, _LATE = datetime(1, 1, 1), datetime(9999, 12, 31)  # noqa: DTZ001


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    """Not the few negative numbers of which pypaimon hashes a byte too many: -128, -32768, …"""
    limit = 10**precision - 1
    spread = st.integers(1, precision).flatmap(
        lambda digits: st.integers(-(10**digits), 10**digits)
    )
    unscaled = spread | st.sampled_from([limit, -limit, 2**63, 127, 128, -129, 255, -255])
    longer = [-(2 ** (8 * size - 1)) for size in range(1, 17)]
    return unscaled.filter(lambda n: abs(n) <= limit and n not in longer).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale))
    )


def timestamps(unit: int) -> st.SearchStrategy[datetime]:
    """Timestamps that are multiples of ``unit`` microseconds."""
    return st.datetimes(_EARLY, _LATE).map(
        lambda t: t.replace(microsecond=t.microsecond // unit * unit)
    )


TYPES: Mapping[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": integers(8),
    "SMALLINT": integers(16),
    "INT": integers(32),
    "BIGINT": integers(64),
    "FLOAT": st.floats(width=32, allow_nan=False) | st.just(float("nan")),
    "DOUBLE": st.floats(allow_nan=False) | st.just(float("nan")),
    "DATE": st.dates(),
    "STRING": st.text(max_size=20),
    "CHAR(9)": st.text("ab é", max_size=9),
    "VARCHAR(9)": st.text("ab é", max_size=9),
    "BYTES": st.binary(max_size=20),
    "BINARY(7)": st.binary(min_size=7, max_size=7),
    "VARBINARY(8)": st.binary(max_size=8),
    "DECIMAL(1, 0)": decimals(1, 0),
    "DECIMAL(9, 2)": decimals(9, 2),
    "DECIMAL(18, 18)": decimals(18, 18),
    "DECIMAL(19, 3)": decimals(19, 3),
    "DECIMAL(38, 0)": decimals(38, 0),
    "DECIMAL(38, 10)": decimals(38, 10),
    "TIMESTAMP(0)": timestamps(10**6),
    "TIMESTAMP(3)": timestamps(10**3),
    "TIMESTAMP(4)": timestamps(10**2),
    "TIMESTAMP(6)": timestamps(1),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": timestamps(10**3).map(lambda t: t.replace(tzinfo=UTC)),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": timestamps(1).map(lambda t: t.replace(tzinfo=UTC)),
}


def has_a_place_for_null(kind: str) -> bool:
    """Where pypaimon hashes NULL otherwise than Java, which keeps a place for a later value."""
    name, _, rest = kind.partition("(")
    limit = {"DECIMAL": 18, "TIMESTAMP": 3}.get(name)
    return limit is not None and int(rest.rstrip(")").split(",")[0].split(")")[0]) > limit


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Types of a bucket key, and rows of it."""
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
    fields = [TYPES[k] if has_a_place_for_null(k) else st.none() | TYPES[k] for k in kinds]
    return kinds, draw(st.lists(st.tuples(*fields), max_size=20))


def function_for(kinds: Sequence[str]) -> tuple[BucketFunction, pa.Schema]:
    from pypaimon.schema.data_types import DataField, DataTypeParser, PyarrowFieldParser

    fields = [
        DataField(i, f"k{i}", DataTypeParser.parse_data_type(kind)) for i, kind in enumerate(kinds)
    ]
    schema = PyarrowFieldParser.from_paimon_schema(fields)
    return BucketFunction(tuple(schema), BUCKETS), schema


def batch_of(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, f.type) for column, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def chosen_by_pypaimon(kinds: Sequence[str], batch: pa.RecordBatch) -> list[int]:
    from pypaimon.schema.data_types import DataField, DataTypeParser
    from pypaimon.schema.table_schema import TableSchema
    from pypaimon.write.row_key_extractor import FixedBucketRowKeyExtractor

    fields = [
        DataField(i, f"k{i}", DataTypeParser.parse_data_type(kind)) for i, kind in enumerate(kinds)
    ]
    options = {"bucket": str(BUCKETS), "bucket-key": ",".join(f.name for f in fields)}
    schema = TableSchema(
        id=0, fields=fields, highest_field_id=9, partition_keys=[], primary_keys=[], options=options
    )
    buckets: list[int] = FixedBucketRowKeyExtractor(schema).extract_partition_bucket_batch(batch)[1]
    return buckets


@settings(max_examples=200, deadline=None)
@given(keys())
def test_the_bucket_is_the_one_that_pypaimon_chooses(
    key: tuple[list[str], list[tuple[Any, ...]]],
) -> None:
    kinds, rows = key
    function, schema = function_for(kinds)
    batch = batch_of(rows, schema)

    (buckets,) = pickle.loads(pickle.dumps(function))(batch)

    assert buckets.type == pa.int32()
    assert buckets.to_pylist() == chosen_by_pypaimon(kinds, batch)


@settings(max_examples=30, deadline=None)
@given(keys(), st.data())
def test_a_part_of_a_batch_has_the_buckets_of_its_rows(
    key: tuple[list[str], list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    kinds, rows = key
    function, schema = function_for(kinds)
    start = data.draw(st.integers(0, len(rows)))
    batch = batch_of(rows, schema)

    assert function(batch.slice(start))[0].to_pylist() == function(batch)[0].to_pylist()[start:]


# Asked of Paimon 1.4.2: BatchTableWrite.getBucket of a table with this key and an INT of 7 behind.
FROM_JAVA: Sequence[tuple[str, Any, int]] = (
    ("DECIMAL(19, 0)", None, 648),
    ("DECIMAL(19, 0)", Decimal(-128), 248),
    ("DECIMAL(19, 0)", Decimal(-(2**63)), 594),
    ("DECIMAL(19, 0)", Decimal(-32768), 270),
    ("DECIMAL(19, 0)", Decimal(127), 258),
    ("DECIMAL(19, 0)", Decimal(-1), 555),
    ("DECIMAL(19, 0)", Decimal(0), 805),
    ("DECIMAL(19, 0)", Decimal(-(10**19) + 1), 558),
    ("TIMESTAMP(6)", None, 191),
    ("TIMESTAMP(6)", datetime(1969, 12, 31, 23, 59, 59, 999999), 453),  # noqa: DTZ001
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", None, 191),
)


@pytest.mark.parametrize(("kind", "value", "bucket"), FROM_JAVA)
def test_where_pypaimon_differs_the_bucket_is_java_s(kind: str, value: Any, bucket: int) -> None:
    function, schema = function_for([kind, "INT"])

    assert function(batch_of([(value, 7)], schema))[0].to_pylist() == [bucket]


def test_values_are_hashed_as_they_are_stored() -> None:
    function, schema = function_for(["TIMESTAMP(3)", "INT"])
    exact = batch_of([(datetime(2024, 1, 1, 0, 0, 0, 123000), 1)], schema)  # noqa: DTZ001
    finer = pa.RecordBatch.from_pydict(
        {
            "k1": pa.array([1], pa.int32()),
            "k0": pa.array([datetime(2024, 1, 1, 0, 0, 0, 123456)]),  # noqa: DTZ001
        }
    )

    assert function(finer) == function(exact)


def test_a_long_text_among_short_ones_takes_no_more_memory_than_it_has() -> None:
    kinds = ["STRING"]
    function, schema = function_for(kinds)
    texts = batch_of([("x" * 1_000_000,), *[(str(n),) for n in range(10_000)]], schema)

    assert function(texts)[0].to_pylist() == chosen_by_pypaimon(kinds, texts)
