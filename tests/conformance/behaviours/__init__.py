"""All behaviours, by theme."""

from tests.conformance.behaviours import (
    cardinality,
    clauses,
    fields,
    filtered,
    joins,
    names,
    nested,
    overwrites,
    refusals,
    subquery_values,
    values,
)

BEHAVIOURS = tuple(
    behaviour
    for theme in (
        clauses,
        joins,
        cardinality,
        names,
        values,
        nested,
        refusals,
        filtered,
        fields,
        overwrites,
        subquery_values,
    )
    for behaviour in theme.BEHAVIOURS
)
