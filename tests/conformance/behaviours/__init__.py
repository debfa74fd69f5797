"""All behaviours, by theme."""

from tests.conformance.behaviours import clauses

BEHAVIOURS = (*clauses.BEHAVIOURS,)
