"""Bytes that texts encode in Base64. Imported by executors."""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.landing.values import Parsed


def binaries(texts: pa.Array) -> Parsed:
    """The bytes that texts encode; one that is not Base64 is bad."""
    found = [None if text is None else from_base64(text) for text in texts.to_pylist()]
    values = pa.array(found, pa.binary())
    bad = np.asarray(pc.and_(values.is_null(), texts.is_valid()).to_numpy(zero_copy_only=False))
    return Parsed(values, bad if bad.any() else None)


def from_base64(text: str) -> bytes | None:
    """The decoded bytes; None unless encoding them again gives the same text."""
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return found if base64.b64encode(found) == text.encode("ascii") else None
