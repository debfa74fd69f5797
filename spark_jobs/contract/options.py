"""Settings of a statement that change what it means, or limit what its job uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among
from spark_jobs.contract.row_preview import require_preview_rows

Isolation = Literal["serializable", "snapshot"]

# The number of partitions that a statement may add where nobody says another.
MAX_NEW_PARTITIONS: Final = 1_000


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Settings that change what a statement means, or limit what the job uses.

    ``session_time_zone``: the zone in which Spark reads and writes timestamps without an offset.
    ``target_file_size``: the size in bytes at which new data files are rolled. ``rewrite_share``:
    on tables with deletion vectors, the share of a file's rows (0 to 1) above which deleting them
    rewrites the file; None: the table decides. ``isolation``: which concurrent commits are a
    conflict (rule 12); None is serializable. ``type_widening``: with schema evolution, the table's
    columns get the source's types where these are wider. ``max_new_partitions``: how many
    partitions the statement may add; None: ``MAX_NEW_PARTITIONS``. ``preview_rows``: of a dry run,
    how many changed rows of each operation are kept for the page of its task; None: none.
    """

    session_time_zone: str = "UTC"
    target_file_size: int = 128 * 1024 * 1024
    rewrite_share: float | None = None
    isolation: Isolation | None = None
    type_widening: bool | None = None
    max_new_partitions: int | None = None
    preview_rows: int | None = None

    def __post_init__(self) -> None:
        require(bool(self.session_time_zone.strip()), "session_time_zone", "is empty")
        require(self.target_file_size > 0, "target_file_size", "must be positive")
        share = self.rewrite_share
        require(share is None or 0 <= share <= 1, "rewrite_share", "must be from 0 to 1")
        most = self.max_new_partitions
        require(most is None or most > 0, "max_new_partitions", "must be positive")
        require_preview_rows(self.preview_rows)
        levels = get_args(Isolation)
        if self.isolation is not None:
            require_among(self.isolation, levels, "isolation")
