"""Which types can be stored in which, as far as the names of types tell (rule 8).

A pair of families that is refused here is refused by the job, whatever the value.
"""

from __future__ import annotations

import re
from typing import Final

from spark_jobs.contract.store_assignment import (
    BINARY,
    BOOLEAN,
    NUMBER,
    STRING,
    TIME,
    is_storable,
)

_ARRAY: Final = "array"
_MAP: Final = "map"
_STRUCT: Final = "struct"
_FAMILIES: Final = {
    **dict.fromkeys(("tinyint", "byte", "smallint", "short", "int", "integer"), NUMBER),
    **dict.fromkeys(("bigint", "long", "float", "real", "double"), NUMBER),
    **dict.fromkeys(("decimal", "dec", "numeric"), NUMBER),
    **dict.fromkeys(("string", "varchar", "char", "character", "text"), STRING),
    "boolean": BOOLEAN,
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz", "timestamp_ltz"), TIME),
    **dict.fromkeys(("binary", "varbinary", "bytes"), BINARY),
    "array": _ARRAY,
    "map": _MAP,
    **dict.fromkeys(("row", "struct"), _STRUCT),
}
_WIDER: Final = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))
_WORD: Final = re.compile(r"\w+")


def family_of(type_name: str) -> str | None:
    """The family of a type of Spark SQL or of a table format; None: it has none here."""
    word = _WORD.match(type_name.strip().lower())
    return _FAMILIES.get(word[0]) if word else None


def may_be_stored(given: str | None, wanted: str | None) -> bool:
    """Whether some value of one family can be stored as the other; True where one is unknown."""
    if given is None or wanted is None or given == wanted:
        return True
    return is_storable(given, wanted)


def is_wider(given: str, wanted: str) -> bool:
    """Whether type widening would certainly change a column of type ``wanted`` to ``given``."""
    words = [_WORD.match(each.strip().lower()) for each in (given, wanted)]
    names = [word[0] if word else "" for word in words]
    return any(
        names[0] in family[family.index(names[1]) + 1 :] for family in _WIDER if names[1] in family
    )
