"""No regular expression of the provider takes more than linear time, whatever text it meets."""

from __future__ import annotations

from tests.support.patterns import slow_patterns

# Expressions that values of a run are part of.
SAMPLES: dict[str, list[str]] = {
    # Names in errors of its own, which are cut.
    "airflow_provider_merge.checks.lines: pattern": [r"(?<![\w`.])`?t`?\s*\.\s*`?id`?(?!\w)"],
    "airflow_provider_merge.operators._shared.source_parameters: "
    "f'\\\\b{re.escape(str(name))}\\\\b'": [r"\bchanges\b"],
}


def test_each_expression_takes_linear_time() -> None:
    assert slow_patterns("airflow_provider_merge", SAMPLES) == {}
