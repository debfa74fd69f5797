"""The names that Paimon keeps for itself, and names that only look like them."""

from __future__ import annotations

import pytest

from spark_jobs.contract.paimon_reserved import is_reserved


@pytest.mark.parametrize(
    "name",
    [
        *("_ROW_ID", "_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_KEY_id"),
        *("_row_id", "RowKind", "_key_"),
    ],
)
def test_reserved(name: str) -> None:
    assert is_reserved(name)


@pytest.mark.parametrize("name", ["row_id", "_ROW_IDS", "level", "row_kind", "_KEY", "a_KEY_b", ""])
def test_free(name: str) -> None:
    assert not is_reserved(name)
