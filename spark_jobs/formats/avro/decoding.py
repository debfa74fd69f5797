"""Decodes the records of Avro files with fastavro. Imported by executors, which may lack it."""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Iterator
from typing import Any, Final, cast

from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.formats.avro.container import AvroBlock, AvroDamagedError

_DECODING: Final = ("type", "name", "namespace", "symbols", "size", "items", "values")
# What fastavro raises for bytes that do not match the schema.
_DECODING_ERRORS: Final = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError),
    *(SystemError, TypeError, ValueError, struct.error),
)


def require_fastavro() -> None:
    """Check that this Python can decode records.

    Raises:
        CatalogError: LIBRARY_MISSING.
    """
    try:
        import fastavro  # noqa: F401
    except ImportError:
        raise CatalogError(
            ErrorCode.LIBRARY_MISSING,
            "Avro files need the package fastavro in the environment of the executors.",
            "Install it there: pip install fastavro.",
        ) from None


def stored_values(schema: Any) -> BlockDecoder:
    """Decodes records without their logical types; raises as ``BlockDecoder``.

    Converting those would round decimals and reject times that other writers produce.
    """
    return BlockDecoder(decoding_schema(schema))


class BlockDecoder:
    """Reads the records of blocks."""

    def __init__(self, written: Any, wanted: Any = None) -> None:
        """Prepare for blocks with the schema ``written``, as parsed JSON.

        Records are read as ``wanted`` says, which has a part of the fields; by default, as they
        were written.

        Raises:
            AvroDamagedError: a schema is not valid.
            CatalogError: LIBRARY_MISSING.
        """
        require_fastavro()
        import fastavro

        self._schemas = (written, wanted)
        try:
            # Decoding all records of a block as one array takes a single call.
            self._array = [_parsed(_array(each)) for each in self._schemas]
        except _DECODING_ERRORS as error:
            raise AvroDamagedError(f"its schema is not valid: {error}") from None
        self._read: Any = fastavro.schemaless_reader

    def records(self, block: AvroBlock) -> list[dict[str, Any]]:
        """The records of a block.

        Raises:
            AvroDamagedError: it does not hold what the schema says.
        """
        if not block.records:
            return []
        data = io.BytesIO(long_bytes(block.records) + block.data + b"\0")
        try:
            records = cast("list[dict[str, Any]]", self._read(data, *self._array))
        except _DECODING_ERRORS:
            raise AvroDamagedError("a block does not hold what the schema says") from None
        if data.read(1) or len(records) != block.records:
            raise AvroDamagedError("a block does not hold what the schema says")
        return records

    @functools.cached_property
    def _record(self) -> list[Any]:
        return [_parsed(each) for each in self._schemas]

    def one_by_one(self, block: AvroBlock) -> Iterator[dict[str, Any]]:
        """The same in the memory of one record, but slower."""
        data = io.BytesIO(block.data)
        try:
            for _ in range(block.records):
                record: Any = self._read(data, *self._record)
                yield record
        except _DECODING_ERRORS:
            raise AvroDamagedError("a block does not hold what the schema says") from None


def _parsed(schema: Any) -> Any:
    import fastavro

    return None if schema is None else fastavro.parse_schema(schema)


def _array(items: Any) -> Any:
    return None if items is None else {"type": "array", "items": items}


def decoding_schema(raw: Any) -> Any:
    """The schema reduced to what decoding needs: no logical types, defaults or documentation."""
    if isinstance(raw, list):
        return [decoding_schema(each) for each in raw]
    if not isinstance(raw, dict):
        return raw
    reduced = {key: raw[key] for key in _DECODING if key in raw}
    for key in ("type", "items", "values"):
        if key in reduced:
            reduced[key] = decoding_schema(reduced[key])
    if "fields" in raw:
        reduced["fields"] = [
            {"name": each["name"], "type": decoding_schema(each["type"])} for each in raw["fields"]
        ]
    return reduced


def long_bytes(value: int) -> bytes:
    """A count in Avro's variable-length encoding."""
    rest, encoded = value << 1, bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])
