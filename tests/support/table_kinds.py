"""The kinds of tables that every judge tries: behaviours, random statements, cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TableKind:
    """How a table keeps rows.

    ``marks_rows``: rows are deleted by deletion vectors, not only by rewriting their file;
    ``buckets``: how many fixed buckets each partition has, None: rows go anywhere, -1: dynamic.
    ``has_key``: tables have a primary key. ``tracks_rows``: rows have ids that they keep.
    ``evolves_columns``: an UPDATE stores columns apart, so that only vectors delete rows, and rows
    stay in their partition. ``transform``: Iceberg's, by which tables are partitioned;
    ``version``: that of its format. ``deletes_by_value``: equality deletes hide older copies of all
    rows. ``older_files``: files are of a spec without partitions.
    """

    name: str
    marks_rows: bool = False
    buckets: int | None = None
    has_key: bool = False
    tracks_rows: bool = False
    evolves_columns: bool = False
    transform: str = ""
    version: int = 2
    deletes_by_value: bool = False
    older_files: bool = False

    @property
    def deletes_rows(self) -> bool:
        """Whether statements may delete rows."""
        return self.marks_rows or not self.evolves_columns

    def options(self, bucket_key: str) -> dict[str, str]:
        """The table's options; ``bucket_key`` is the column that decides the bucket.

        In tables with a primary key, that key decides.
        """
        options = {}
        if self.marks_rows:
            options["deletion-vectors.enabled"] = "true"
        if self.tracks_rows:
            options["row-tracking.enabled"] = "true"
        if self.evolves_columns:
            options["data-evolution.enabled"] = "true"
        if self.buckets is not None:
            options["bucket"] = str(self.buckets)
            if not self.has_key:
                options["bucket-key"] = bucket_key
        return options


APPEND_COW = TableKind("append-cow")
APPEND_DV = TableKind("append-dv", marks_rows=True)
BUCKETED_COW = TableKind("bucketed-cow", buckets=2)
BUCKETED_DV = TableKind("bucketed-dv", marks_rows=True, buckets=2)
ROW_TRACKING = TableKind("row-tracking", tracks_rows=True)
ROW_TRACKING_DV = TableKind("row-tracking-dv", marks_rows=True, tracks_rows=True)
DATA_EVOLUTION = TableKind("data-evolution", tracks_rows=True, evolves_columns=True)
DATA_EVOLUTION_DV = TableKind(
    "data-evolution-dv", marks_rows=True, tracks_rows=True, evolves_columns=True
)

PRIMARY_KEY = TableKind("primary-key", buckets=2, has_key=True)
PRIMARY_KEY_DV = TableKind("primary-key-dv", marks_rows=True, buckets=2, has_key=True)
PRIMARY_KEY_DYNAMIC = TableKind("primary-key-dynamic", buckets=-1, has_key=True)

# Append tables; those with a key need rows with keys.
BUILT = (APPEND_COW, APPEND_DV, BUCKETED_COW, BUCKETED_DV)
KEYED = (PRIMARY_KEY, PRIMARY_KEY_DV, PRIMARY_KEY_DYNAMIC)
TRACKED = (ROW_TRACKING, ROW_TRACKING_DV)
EVOLVING = (DATA_EVOLUTION, DATA_EVOLUTION_DV)
KINDS = {kind.name: kind for kind in (*BUILT, *KEYED, *TRACKED, *EVOLVING)}
# Not Paimon.
ICEBERG_COW = TableKind("iceberg-cow")
ICEBERG_MOR = TableKind("iceberg-mor", marks_rows=True)
ICEBERG_V3 = (
    TableKind("iceberg-v3-cow", version=3),
    TableKind("iceberg-v3-mor", marks_rows=True, version=3),
)
ICEBERG = (ICEBERG_COW, ICEBERG_MOR, *ICEBERG_V3)
ICEBERG_BUCKETS = (
    TableKind("iceberg-cow-bucket", transform="bucket[4]"),
    TableKind("iceberg-mor-bucket", marks_rows=True, transform="bucket[4]"),
)
ICEBERG_DAYS = (
    TableKind("iceberg-cow-day", transform="day"),
    TableKind("iceberg-mor-day", marks_rows=True, transform="day"),
)
ICEBERG_DELETES = (
    TableKind("iceberg-cow-equality", deletes_by_value=True),
    TableKind("iceberg-mor-equality", marks_rows=True, deletes_by_value=True),
)
ICEBERG_TRUNCATED = (
    TableKind("iceberg-cow-truncate", transform="truncate[25]"),
    TableKind("iceberg-mor-truncate", marks_rows=True, transform="truncate[25]"),
    TableKind("iceberg-cow-older", transform="truncate[25]", older_files=True),
    TableKind("iceberg-mor-older", marks_rows=True, transform="truncate[25]", older_files=True),
)
# Not Paimon: the format in miniature (``tests/support/folder_connector``).
FOLDER = TableKind("folder")


def named_kinds(names: Sequence[str], among: Sequence[TableKind] = BUILT) -> tuple[TableKind, ...]:
    """The kinds of these names, which are ``among`` these.

    Raises:
        ValueError: there is no such kind.
    """
    built = {kind.name: kind for kind in among}
    for name in names:
        if name not in built:
            raise ValueError(f"{name} is not one of: {', '.join(built)}")
    return tuple(built[name] for name in names)
