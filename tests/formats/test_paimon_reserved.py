"""The names that Paimon keeps for itself, and names that only look like them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_jobs.contract.sql_text import RESERVED_PREFIX
from spark_jobs.formats.paimon.definitions import KEY_PREFIX, NAMES, is_reserved

DOCS = Path(__file__).parents[2] / "docs"


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


def test_the_docs_have_the_same_names() -> None:
    text = (DOCS / "semantics.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"- \*\*Refused\*\* are new columns.*?(?=\n\n|\n- )", text, re.DOTALL)
    named = {each.rstrip("…").lower() for each in re.findall(r"`([^`]+)`", line)}
    assert named == {*NAMES, KEY_PREFIX, RESERVED_PREFIX}
