"""Encodes records as an Avro file with fastavro. Driver only.

Records have the values that ``decoding`` returns: no logical types.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from spark_jobs.formats.avro.decoding import decoding_schema, long_bytes, require_fastavro

_MAGIC: Final = b"Obj\x01"
_BLOCK_RECORDS: Final = 1_000


def avro_file(schema: Any, metadata: Mapping[str, bytes], records: Iterable[Any]) -> bytes:
    """A file of ``records``, deflated; ``schema`` is parsed JSON, ``metadata`` more of the header.

    Raises:
        CatalogError: LIBRARY_MISSING.
        ValueError, TypeError and whatever fastavro raises: a record does not fit the schema.
    """
    require_fastavro()
    import fastavro

    header = {
        **metadata,
        "avro.schema": json.dumps(schema).encode(),
        "avro.codec": b"deflate",
    }
    sync = os.urandom(16)
    parts = [_MAGIC, long_bytes(len(header))]
    for name, value in header.items():
        parts += [_text(name.encode()), _text(value)]
    parts += [long_bytes(0), sync]
    reduced = fastavro.parse_schema(decoding_schema(schema))
    for block in _blocks(records):
        encoded = io.BytesIO()
        for record in block:
            fastavro.schemaless_writer(encoded, reduced, record)
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        data = packer.compress(encoded.getvalue()) + packer.flush()
        parts += [long_bytes(len(block)), _text(data), sync]
    return b"".join(parts)


def _blocks(records: Iterable[Any]) -> Iterator[Sequence[Any]]:
    rest = iter(records)
    while block := list(islice(rest, _BLOCK_RECORDS)):
        yield block


def _text(value: bytes) -> bytes:
    return long_bytes(len(value)) + value
