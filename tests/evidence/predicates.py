"""Every shape of condition on every column: comparisons, lists, ranges, NULL tests, collations."""

from __future__ import annotations

import itertools
from typing import Final

from tests.evidence.columns import COLUMNS, DOUBLES, HAS_COLLATIONS, Column

_COMPARISONS: Final = ("=", "<=>", "<>", "<", "<=", ">", ">=")
_COLLATIONS: Final = ("UTF8_LCASE", "UNICODE_CI", "UNICODE")
# Constants of other types, beside those of its own.
_OTHERS: Final = {
    "INT": ("2147483648L", "-0.5BD", "double('NaN')", "double('-0.0')", "0.5D", "NULL", "'7'"),
    "BIGINT": ("2147483647", "9223372036854775808BD", "double('NaN')", "9.223372036854775807E18D"),
    "DOUBLE": ("0", "5", "float('NaN')", "CAST(NULL AS DOUBLE)", "'NaN'", "0.0BD"),
    "FLOAT": ("0", "5", "double('NaN')", "double('-0.0')"),
    "DECIMAL(9, 2)": ("0.001BD", "-9999999.991BD", "1", "0.0D"),
    "STRING": ("NULL",),
    "DATE": ("TIMESTAMP'1970-01-01 00:00:00.000001Z'", "'1970-01-01'"),
    "TIMESTAMP": (
        "DATE'1970-01-01'",
        "TIMESTAMP'1970-01-01 00:00:00.0005Z'",
        "TIMESTAMP'1969-12-31 23:59:59.9995Z'",
        "TIMESTAMP_NTZ'2024-03-31 02:30:00'",
    ),
    "TIMESTAMP_NTZ": ("TIMESTAMP'2024-03-31 01:30:00Z'", "DATE'1970-01-01'"),
}


def predicates() -> list[str]:
    """All conditions; the table is ``t``."""
    found = [each for column in COLUMNS for each in _of_column(column)]
    found += [each for part in ("x", "k") for each in _of_values(f"t.st.{part}", _parts(part), ())]
    found += ["t.st IS NULL", "t.st IS NOT NULL", "t.st.x > 5 AND t.st.k >= 0", "NOT t.b", "t.b"]
    if HAS_COLLATIONS:
        found += _collated("t.s")
    return found


def _parts(name: str) -> list[str]:
    if name == "k":
        return ["0", "3", "8"]
    return [f"CAST('{value}' AS DOUBLE)" for value in DOUBLES[:6]]


def _of_column(column: Column) -> list[str]:
    others = _OTHERS.get(column.type, ())
    return _of_values(f"t.`{column.name}`", column.literals, others)


def _of_values(name: str, literals: list[str], others: tuple[str, ...]) -> list[str]:
    found = [f"{name} {sign} {each}" for each in (*literals, *others) for sign in _COMPARISONS]
    found += [f"{each} {sign} {name}" for each in literals[:2] for sign in _COMPARISONS]
    found += [f"NOT ({name} {sign} {each})" for each in literals[:4] for sign in _COMPARISONS]
    pairs = list(itertools.pairwise([*literals, literals[0]]))
    found += [f"{name} IN ({a}, {b})" for a, b in pairs]
    found += [f"{name} NOT IN ({a}, {b})" for a, b in pairs]
    found += [f"{name} IN ({a}, NULL)" for a, _ in pairs[:3]]
    found += [f"{name} BETWEEN {a} AND {b}" for a, b in pairs]
    found += [f"{name} < {a} OR {name} >= {b}" for a, b in pairs]
    found += [f"{name} <=> NULL", f"{name} IS NULL", f"{name} IS NOT NULL"]
    found += [f"coalesce({name}, {literals[0]}) = {literals[0]}"]
    return found


def _collated(name: str) -> list[str]:
    found = []
    for collation, text in itertools.product(_COLLATIONS, ("b", "A", "", "é", "Z")):
        for sign in _COMPARISONS:
            found.append(f"{name} {sign} '{text}' COLLATE {collation}")
        found.append(f"{name} COLLATE {collation} >= '{text}'")
        found.append(f"NOT ({name} = '{text}' COLLATE {collation})")
        found.append(f"{name} IN ('{text}' COLLATE {collation}, 'q' COLLATE {collation})")
        found.append(f"{name} BETWEEN '{text}' COLLATE {collation} AND 'z' COLLATE {collation}")
    return found
