"""Values of partitions as they are compared: equal if Spark takes them for equal.

Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

import math
from typing import Any, Final

# Equal to itself, unlike NaN; no value of a partition is a tuple.
_NAN: Final = ("NaN",)


def comparable(value: Any) -> Any:
    """What is equal, and has one hash, for equal values: both zeros are, and so is NaN to NaN."""
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value + 0.0
    return bytes(value) if isinstance(value, bytearray) else value
