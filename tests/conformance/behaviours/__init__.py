"""All behaviours, by theme."""

from tests.conformance.behaviours import (
    cardinality,
    clauses,
    joins,
    names,
    nested,
    refusals,
    values,
)

BEHAVIOURS = tuple(
    behaviour
    for theme in (clauses, joins, cardinality, names, values, nested, refusals)
    for behaviour in theme.BEHAVIOURS
)
