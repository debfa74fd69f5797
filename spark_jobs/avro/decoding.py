"""Decodes the records of Avro files with fastavro. Imported by executors, which may lack it.

fastavro decodes the records without their logical types: converting those would round decimals
and reject times that other writers produce.
"""

from __future__ import annotations

import io
import struct
from typing import Any, Final, cast

from spark_jobs.avro.container import AvroBlock, AvroDamagedError
from spark_jobs.errors import CatalogError, ErrorCode

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


class BlockDecoder:
    """Reads records with the schema that they were written with."""

    def __init__(self, schema: Any) -> None:
        """Prepare for blocks with ``schema``, as parsed JSON.

        Raises:
            AvroDamagedError: ``schema`` is none.
            CatalogError: LIBRARY_MISSING.
        """
        require_fastavro()
        import fastavro

        # Decoding all records of a block as one array takes a single call.
        array = {"type": "array", "items": decoding_schema(schema)}
        try:
            self._schema = fastavro.parse_schema(array)
        except _DECODING_ERRORS as error:
            raise AvroDamagedError(f"its schema is none: {error}") from None
        self._read = fastavro.schemaless_reader

    def records(self, block: AvroBlock) -> list[dict[str, Any]]:
        """The records of a block.

        Raises:
            AvroDamagedError: it does not hold what the schema says.
        """
        if not block.records:
            return []
        data = io.BytesIO(long_bytes(block.records) + block.data + b"\0")
        try:
            found = cast("list[dict[str, Any]]", self._read(data, self._schema))
        except _DECODING_ERRORS:
            raise AvroDamagedError("a block does not hold what the schema says") from None
        if data.read(1) or len(found) != block.records:
            raise AvroDamagedError("a block does not hold what the schema says")
        return found


def decoding_schema(raw: Any) -> Any:
    """The schema reduced to what decoding needs: no logical types, defaults or documentation."""
    if isinstance(raw, list):
        return [decoding_schema(each) for each in raw]
    if not isinstance(raw, dict):
        return raw
    kept = {key: raw[key] for key in _DECODING if key in raw}
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = decoding_schema(kept[key])
    if "fields" in raw:
        kept["fields"] = [
            {"name": each["name"], "type": decoding_schema(each["type"])} for each in raw["fields"]
        ]
    return kept


def long_bytes(value: int) -> bytes:
    """A count in Avro's variable-length encoding."""
    rest, found = value << 1, bytearray()
    while rest >= 0x80:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])
