"""How statements are stored in tables with a primary key: what the page says and the tests try.

``python -m tests.judge.storing docs/primary-key.md`` writes the page's matrix between its marks.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ENGINES = ("deduplicate", "partial-update", "first-row", "aggregation")
FEATURES: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "`sequence.field`": {"sequence.field": "seq"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "producer `input`": {"changelog-producer": "input"},
    "producer `lookup`": {"changelog-producer": "lookup"},
    "producer `full-compaction`": {"changelog-producer": "full-compaction"},
}
BUCKETS = {"fixed": "2", "dynamic": "-1", "postponed": "-2"}
# The statements, in groups that are stored alike.
GROUPS = {
    "MERGE whose ON compares the whole key, UPDATE, DELETE": ("merge", "update", "delete"),
    "MERGE with other INSERTs": ("merge of any key",),
    "INSERT INTO": ("insert",),
    "INSERT OVERWRITE, TRUNCATE": ("overwrite", "truncate"),
}
BEGIN, END = "<!-- matrix -->", "<!-- end of matrix -->"

# What first-row is refused with.
_REFUSED: Mapping[str, str] = {
    "`sequence.field`": "first-row with sequence.field",
    "deletion vectors": "first-row with deletion vectors",
    "producer `input`": "first-row with changelog-producer = input",
    "producer `full-compaction`": "first-row with changelog-producer = full-compaction",
}
_APPENDING = ("none", "producer `lookup`", "producer `full-compaction`")

APPEND, REWRITE, REFUSED = "append", "rewrite", "refused"


@dataclass(frozen=True)
class Storage:
    """How a table is set up: its merge engine, one more feature and its buckets."""

    engine: str
    feature: str
    buckets: str

    @property
    def options(self) -> dict[str, str]:
        """The table's options."""
        return {
            "merge-engine": self.engine,
            "bucket": BUCKETS[self.buckets],
            **FEATURES[self.feature],
        }

    @property
    def refusal(self) -> str:
        """Why no statement is possible; empty if some are. The error says so, too."""
        return _REFUSED.get(self.feature, "") if self.engine == "first-row" else ""

    def stored(self, statement: str) -> str:
        """``append``, ``rewrite`` or ``refused``."""
        if self.refusal:
            return REFUSED
        if statement in ("overwrite", "truncate", "merge of any key"):
            return REWRITE
        is_exact = self.engine == "deduplicate" and self.feature in _APPENDING
        return APPEND if is_exact else REWRITE


STORAGES = [Storage(*each) for each in itertools.product(ENGINES, FEATURES, BUCKETS)]
STATEMENTS = [statement for group in GROUPS.values() for statement in group]


def matrix() -> str:
    """The matrix as Markdown; lines that are alike are one."""
    lines = [f"| Engine | With | Buckets | {' | '.join(GROUPS)} |"]
    lines.append("|" + "---|" * (3 + len(GROUPS)))
    for engine in ENGINES:
        found = {feature: _line(engine, feature) for feature in FEATURES}
        for line, alike in itertools.groupby(found, key=lambda each: found[each]):
            lines.append(f"| {engine} | {', '.join(alike)} | {line}")
    return "\n".join(lines)


def _line(engine: str, feature: str) -> str:
    cells = {_cells(Storage(engine, feature, each)) for each in BUCKETS}
    assert len(cells) == 1, "these kinds of buckets differ"
    return f"{', '.join(BUCKETS)} | {' | '.join(cells.pop())} |"


def _cells(storage: Storage) -> tuple[str, ...]:
    if storage.refusal:
        return (f"refused: {storage.refusal}",) * len(GROUPS)
    return tuple(storage.stored(statements[0]) for statements in GROUPS.values())


def main(path: str) -> None:
    """Write the matrix into the page."""
    page = Path(path)
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{matrix()}\n\n{END}{after}")


if __name__ == "__main__":
    main(*sys.argv[1:])
