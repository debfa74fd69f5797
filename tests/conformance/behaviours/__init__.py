"""All behaviours, by theme."""

from tests.conformance.behaviours import (
    cardinality,
    clauses,
    filtered,
    joins,
    names,
    nested,
    refusals,
    values,
)

BEHAVIOURS = tuple(
    behaviour
    for theme in (clauses, joins, cardinality, names, values, nested, refusals, filtered)
    for behaviour in theme.BEHAVIOURS
)
