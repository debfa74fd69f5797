"""The kinds of Paimon tables that every judge tries: behaviours, random statements, cases.

A kind that is not built yet stands in ``KINDS`` and not in ``BUILT``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TableKind:
    """How a table keeps rows.

    ``marks_rows``: rows are deleted by deletion vectors, not only by rewriting their file;
    ``buckets``: how many fixed buckets each partition has, None: rows go anywhere.
    """

    name: str
    marks_rows: bool = False
    buckets: int | None = None

    def options(self, bucket_key: str) -> dict[str, str]:
        """The table's options; ``bucket_key`` is the column that decides the bucket."""
        options = {}
        if self.marks_rows:
            options["deletion-vectors.enabled"] = "true"
        if self.buckets is not None:
            options |= {"bucket": str(self.buckets), "bucket-key": bucket_key}
        return options


APPEND_COW = TableKind("append-cow")
APPEND_DV = TableKind("append-dv", marks_rows=True)
BUCKETED_COW = TableKind("bucketed-cow", buckets=2)
BUCKETED_DV = TableKind("bucketed-dv", marks_rows=True, buckets=2)

PRIMARY_KEY = TableKind("primary-key")

KINDS = {
    kind.name: kind for kind in (APPEND_COW, APPEND_DV, BUCKETED_COW, BUCKETED_DV, PRIMARY_KEY)
}
BUILT = (APPEND_COW, APPEND_DV, BUCKETED_COW, BUCKETED_DV)
# Not Paimon: the format in miniature (``tests/support/folder_connector``).
FOLDER = TableKind("folder")


def built_kinds(names: Sequence[str], among: Sequence[TableKind] = BUILT) -> tuple[TableKind, ...]:
    """The kinds of these names, which are ``among`` these.

    Raises:
        ValueError: there is no such kind, or it is not built yet.
    """
    built = {kind.name: kind for kind in among}
    for name in names:
        if name not in built:
            problem = "is not built yet; built" if name in KINDS else "is not one of"
            raise ValueError(f"{name} {problem}: {', '.join(built)}")
    return tuple(built[name] for name in names)
