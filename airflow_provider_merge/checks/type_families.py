"""Which types can be stored in which, as far as the names of types tell (rule 8).

The rules are those of ``spark_jobs.engine.analysis.store_assignment``, for whole families of types:
a pair that is refused here is refused there, whatever the value.
"""

from __future__ import annotations

import re
from typing import Final

_FAMILIES: Final = {
    **dict.fromkeys(("tinyint", "byte", "smallint", "short", "int", "integer"), "number"),
    **dict.fromkeys(("bigint", "long", "float", "real", "double"), "number"),
    **dict.fromkeys(("decimal", "dec", "numeric"), "number"),
    **dict.fromkeys(("string", "varchar", "char", "character", "text"), "string"),
    "boolean": "boolean",
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz", "timestamp_ltz"), "time"),
    **dict.fromkeys(("binary", "varbinary", "bytes"), "binary"),
    "array": "array",
    "map": "map",
    **dict.fromkeys(("row", "struct"), "struct"),
}
_ATOMIC: Final = ("number", "string", "boolean", "time", "binary")
_WIDER: Final = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))
_WORD: Final = re.compile(r"\w+")


def family_of(type_name: str) -> str | None:
    """The family of a type of Spark SQL or of a table format; None: it has none here."""
    word = _WORD.match(type_name.strip().lower())
    return _FAMILIES.get(word[0]) if word else None


def is_storable(given: str | None, wanted: str | None) -> bool:
    """Whether some value of one family can be stored as the other; True where one is unknown."""
    if given is None or wanted is None or given == wanted:
        return True
    if wanted == "string":
        return given in _ATOMIC
    return given == "string" and wanted in ("number", "boolean", "time")


def is_wider(given: str, wanted: str) -> bool:
    """Whether type widening would certainly change a column of type ``wanted`` to ``given``."""
    words = [_WORD.match(each.strip().lower()) for each in (given, wanted)]
    names = [word[0] if word else "" for word in words]
    return any(
        names[0] in family[family.index(names[1]) + 1 :] for family in _WIDER if names[1] in family
    )
