"""All behaviours, by theme."""

from tests.conformance.behaviours import (
    cardinality,
    clauses,
    fields,
    filtered,
    joins,
    names,
    nested,
    refusals,
    values,
)

BEHAVIOURS = tuple(
    behaviour
    for theme in (clauses, joins, cardinality, names, values, nested, refusals, filtered, fields)
    for behaviour in theme.BEHAVIOURS
)
