"""Which families of types can be stored in which: Spark's ``Cast.canANSIStoreAssign`` (rule 8).

As in Delta Lake, strings that parse are also stored as numbers, booleans, dates and timestamps.
"""

from __future__ import annotations

from typing import Final

NUMBER: Final = "number"
STRING: Final = "string"
BOOLEAN: Final = "boolean"
# Dates and timestamps.
TIME: Final = "time"
BINARY: Final = "binary"
# Other types that hold one value, such as intervals.
OTHER: Final = "other"

_PAIRS: Final = frozenset(
    {
        *((NUMBER, NUMBER), (STRING, STRING), (BOOLEAN, BOOLEAN), (TIME, TIME), (BINARY, BINARY)),
        *((each, STRING) for each in (NUMBER, BOOLEAN, TIME, BINARY, OTHER)),
        *((STRING, each) for each in (NUMBER, BOOLEAN, TIME)),
    }
)


def is_storable(given: str, wanted: str) -> bool:
    """Whether some value of one family can be stored as the other."""
    return (given, wanted) in _PAIRS
