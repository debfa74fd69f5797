"""Partition transforms of Arrow arrays. Runs on executors.

Follows the Iceberg specification, "Partition Transforms".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any, Final
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.connectors.iceberg.format.schema import IcebergType, spark_type
from spark_jobs.connectors.iceberg.format.values import big_endian, date, partition_value
from spark_jobs.contract.partition_names import partition_text
from spark_jobs.datafiles import murmur3
from spark_jobs.formats.iceberg.transforms import keeps_type, named

_EXACT: Final = Context(prec=40)
FLOATING: Final = ("float", "double")
MICROSECONDS: Final = {"hour": 3_600_000_000, "day": 86_400_000_000}


def field_type(kind: IcebergType, transform: str) -> str:
    """The Spark type of a partition field's values as people write them, in DDL form."""
    if keeps_type(transform):
        return spark_type(kind)
    return {"month": "STRING", "day": "DATE", "hour": "STRING"}.get(transform, "INT")


def field_value(kind: IcebergType, transform: str, raw: Any) -> Any:
    """A partition value as people write it: ``2026``, ``2026-01``, a date; ``raw`` is Avro's."""
    if raw is None or isinstance(raw, Decimal) or transform.startswith("bucket"):
        return raw
    shown = _SHOWN.get(transform)
    return partition_value(kind, raw) if shown is None else shown(raw)


def field_values(array: pa.Array, transform: str) -> pa.Array:
    """The results of ``transformed`` as ``field_value`` has them."""
    if transform == "year":
        return pc.add(array, pa.scalar(1970, pa.int32()))
    if transform == "day":
        return array.cast(pa.date32())
    if transform not in _SHOWN:
        return array
    distinct = array.dictionary_encode()
    texts = [_SHOWN[transform](each.as_py()) for each in distinct.dictionary]
    return pa.array(texts, pa.string()).take(distinct.indices)


def transformed(array: pa.Array, kind: IcebergType, transform: str) -> pa.Array:
    """The partition values of an array of the type ``kind``."""
    if transform == "identity":
        return array
    name, number = named(transform)
    if number is None:
        return _unit(array, name)
    return _bucket(array, kind, number) if name == "bucket" else _truncated(array, number)


def _bucket(array: pa.Array, kind: IcebergType, buckets: int) -> pa.Array:
    if kind.name in ("string", "binary") or kind.name.startswith("decimal"):
        hashes = _hashes_of_bytes(array)
    else:
        hashes = murmur3.of_longs(_longs(array))
    found = (hashes & np.uint32(0x7FFFFFFF)) % np.uint32(buckets)
    return pa.array(found.astype(np.int32), mask=_nulls(array))


def _hashes_of_bytes(array: pa.Array) -> murmur3.Hashes:
    if pa.types.is_decimal(array.type):
        array = pa.array([_decimal_bytes(each) for each in array.to_pylist()], pa.binary())
    array = pc.fill_null(array.cast(pa.binary()), b"").cast(pa.large_binary())
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return murmur3.of_bytes(content, places[:-1], np.diff(places))


def _decimal_bytes(value: Decimal | None) -> bytes | None:
    """The unscaled number in the fewest bytes, big-endian."""
    if value is None:
        return None
    return big_endian(unscaled(value))


def unscaled(value: Decimal) -> int:
    """The digits of a decimal as a number."""
    _, _, exponent = value.as_tuple()
    return int(value.scaleb(-int(exponent), _EXACT))


def _longs(array: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Numbers, days or microseconds; 0 for NULL."""
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    values: np.ndarray[Any, np.dtype[np.int64]] = pc.fill_null(array.cast(pa.int64()), 0).to_numpy()
    return values


def _nulls(array: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    nulls: np.ndarray[Any, np.dtype[np.bool_]] = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _truncated(array: pa.Array, width: int) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind):
        return pc.utf8_slice_codeunits(array, 0, width)
    if pa.types.is_binary(kind):
        return pc.binary_slice(array, 0, width)
    if pa.types.is_decimal(kind):
        return pa.array([_truncated_decimal(each, width) for each in array.to_pylist()], kind)
    values = _longs(array)
    found = values - np.mod(values, width)
    return pa.array(found, pa.int64(), mask=_nulls(array)).cast(kind, safe=False)


def _truncated_decimal(value: Decimal | None, width: int) -> Decimal | None:
    if value is None:
        return None
    number = unscaled(value)
    return Decimal(number - number % width).scaleb(int(value.as_tuple().exponent), _EXACT)


def _unit(array: pa.Array, unit: str) -> pa.Array:
    if unit in MICROSECONDS and pa.types.is_timestamp(array.type):
        found = np.floor_divide(_longs(array), MICROSECONDS[unit])
        return pa.array(found.astype(np.int32), mask=_nulls(array))
    if unit == "day":
        return array.cast(pa.int32())
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us"))
    years = pc.subtract(pc.year(array), 1970)
    if unit == "month":
        years = pc.add(pc.multiply(years, 12), pc.subtract(pc.month(array), 1))
    return years.cast(pa.int32())


def raw_value(value: pa.Scalar, transform: str) -> Any:
    """A partition value of ``field_values`` as Avro holds it, but decimals as such.

    Floating ones are text for ``float.fromhex``, so that equal values are those of one partition.
    """
    if not value.is_valid:
        return None
    if transform == "year":
        return value.as_py() - 1970
    if transform == "month":
        return int(np.datetime64(value.as_py(), "M").astype(np.int64))
    if transform == "hour":
        day, _, hour = value.as_py().rpartition("-")
        return int(np.datetime64(day, "D").astype(np.int64)) * 24 + int(hour)
    if pa.types.is_date32(value.type):
        return value.cast(pa.int32()).as_py()
    if pa.types.is_timestamp(value.type):
        return value.cast(pa.int64()).as_py()
    if pa.types.is_floating(value.type):
        return value.as_py().hex()
    return value.as_py()


def path_text(kind: IcebergType, transform: str, raw: Any) -> str:
    """A partition value of ``raw_value`` in the name of a folder, which only people read."""
    value = field_value(kind, transform, decoded(kind, raw))
    return "null" if value is None else quote_plus(str(partition_text(value)))


def decoded(kind: IcebergType, raw: Any) -> Any:
    """A partition value of ``raw_value`` as Avro holds it."""
    return float.fromhex(raw) if raw is not None and kind.name in FLOATING else raw


_SHOWN: Final[Mapping[str, Callable[[int], Any]]] = {
    "year": lambda raw: 1970 + raw,
    "month": lambda raw: str(np.datetime64(raw, "M")),
    "day": date,
    "hour": lambda raw: str(np.datetime64(raw, "h")).replace("T", "-"),
}
