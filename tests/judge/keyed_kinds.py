"""The options of tables with a primary key that random histories have."""

from __future__ import annotations

SEQUENCE = {"sequence.field": "seq"}
VECTORS = {"deletion-vectors.enabled": "true"}
SUMS = {
    "merge-engine": "aggregation",
    "fields.a.aggregate-function": "sum",
    "fields.b.aggregate-function": "max",
}
INPUT = {"changelog-producer": "input"}
LOOKUP = {"changelog-producer": "lookup"}
FULL_COMPACTION = {"changelog-producer": "full-compaction"}
KINDS = (
    {},
    {},
    SEQUENCE,
    VECTORS,
    {**SEQUENCE, **VECTORS},
    {"merge-engine": "partial-update"},
    {"merge-engine": "partial-update", **SEQUENCE},
    {"merge-engine": "first-row"},
    SUMS,
    {"data-file.thin-mode": "true"},
    INPUT,
    {**INPUT, **SEQUENCE, "data-file.thin-mode": "true"},
    {**INPUT, **VECTORS},
    {**INPUT, **SUMS},
    LOOKUP,
    {**LOOKUP, **SEQUENCE, "changelog-producer.row-deduplicate": "true"},
    {**LOOKUP, **VECTORS},
    {**LOOKUP, "merge-engine": "partial-update"},
    {**LOOKUP, **SUMS},
    {**SUMS, "force-lookup": "true"},
    {**LOOKUP, "merge-engine": "first-row"},
    FULL_COMPACTION,
    {**FULL_COMPACTION, **SEQUENCE},
    {**FULL_COMPACTION, **SUMS},
)
