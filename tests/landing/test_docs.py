"""The table of traps in docs/sources.md is the list of traps that tests run."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.source_traps import TRAPS

DOCS = Path(__file__).resolve().parents[2] / "docs" / "sources.md"
CODES = {
    "value": "VALUE_NOT_STORABLE",
    "record": "SOURCE_UNREADABLE",
    "file": "SOURCE_UNREADABLE",
    "not supported": "NOT_SUPPORTED",
}


def documented() -> dict[str, list[str]]:
    """The cells of the table's rows by trap."""
    text = DOCS.read_text(encoding="utf-8")
    table = text.partition("## Traps")[2].partition("\n## ")[0]
    rows = [line.strip("|\n ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {row[0]: [cell.strip(" |") for cell in row[1:]] for row in rows if row[0] != "Trap"}


def test_every_trap_is_documented_and_every_documented_trap_is_tested() -> None:
    assert sorted(documented()) == sorted(trap.id for trap in TRAPS)


def test_what_happens_is_what_the_docs_say() -> None:
    for trap in TRAPS:
        happens = documented()[trap.id][1]
        kind = re.fullmatch(r"error: (.+)", happens)
        assert (kind is None) == (trap.code is None), trap.id
        if kind is not None:
            assert trap.code in ("*", CODES[kind[1]]), trap.id


def test_the_docs_name_the_option_that_the_test_reads_with() -> None:
    for trap in TRAPS:
        cells = documented()[trap.id]
        named = set(re.findall(r"`(\w+)`", cells[2])) if len(cells) > 2 else set()
        # On S3 without a Hadoop jar no option takes files that lack a column.
        assert named - {"mergeSchema"} == set(trap.accepting), trap.id
