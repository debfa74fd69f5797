"""The condition that a table, or some of its partitions, is worth compacting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from airflow_provider_merge.metadata.model import CompactionFacts
from airflow_provider_merge.metadata.snapshot_facts import (
    Observation,
    counted,
    described,
    newest,
    snapshot_facts,
)
from airflow_provider_merge.metadata.table_view import TableView
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.errors import NotSupportedError

_SHOWN: Final = 5
# An XCom and an event of the trigger hold so many.
MOST_LISTED: Final = 100


@dataclass(frozen=True, slots=True)
class CompactionGate:
    """Open while a partition is worth compacting: one of the conditions that are given is enough.

    A bucket has at least ``min_small_files`` joinable files (``CompactionFacts``) or
    ``min_sorted_runs`` sorted runs, or deletion vectors mark more than ``min_deleted_share`` of the
    rows. ``partition`` has values of partition columns. The other fields are those of
    ``CompactSpec``.
    """

    kind: ClassVar[str] = "compaction"
    min_small_files: int | None = None
    min_sorted_runs: int | None = None
    min_deleted_share: float | None = None
    partition: Mapping[str, Any] | None = None
    small_file_share: float | None = None
    target_file_size: str | None = None
    include_pending: bool = False

    @property
    def spec(self) -> CompactSpec:
        """The compaction whose work is counted.

        Raises:
            RequestError: a field is invalid.
        """
        return CompactSpec(
            target_file_size=self.target_file_size,
            small_file_share=self.small_file_share,
            include_pending=self.include_pending,
        )

    def observe(self, view: TableView) -> Observation:
        """Facts: the newest snapshot, and the partitions that are worth it, the worst first.

        There are at most ``MOST_LISTED`` of them; ``partitions_found`` counts all.
        """
        wanted = self.partition or {}
        view.partition_filter(wanted)
        latest = view.latest
        if latest is None:
            return Observation(f"{newest(view)}, expected {self._expected()}")
        facts = sorted(view.compaction_facts(self.spec, wanted), key=self._reached, reverse=True)
        due = [each for each in facts if self._is_met(each)]
        if due:
            texts = [f"{_subject(each)} {self._told(each)}" for each in due[:_SHOWN]]
            more = len(due) - len(texts)
            text = "; ".join([*texts, f"and {more:,} more"] if more else texts)
            listed = [_document(each) for each in due[:MOST_LISTED]]
            counts = {"partitions": listed, "partitions_found": len(due)}
            return Observation(f"{described(latest)}: {text}", {**snapshot_facts(latest), **counts})
        self._require_known(facts)
        worst = f"{_subject(facts[0])} {self._told(facts[0])}" if facts else "there are no files"
        return Observation(f"{worst}, expected {self._expected()}; {newest(view)}")

    def _is_met(self, facts: CompactionFacts) -> bool:
        share, least = facts.marked_share, self.min_deleted_share
        return (
            (self.min_small_files is not None and facts.joinable_files >= self.min_small_files)
            or (self.min_sorted_runs is not None and facts.most_sorted_runs >= self.min_sorted_runs)
            or (least is not None and share is not None and share > least)
        )

    def _reached(self, facts: CompactionFacts) -> float:
        """How far the nearest of the limits is reached; 1: it is."""
        reached = (
            (facts.joinable_files, self.min_small_files),
            (facts.most_sorted_runs, self.min_sorted_runs),
            (facts.marked_share or 0.0, self.min_deleted_share),
        )
        return max(value / limit for value, limit in reached if limit)

    def _told(self, facts: CompactionFacts) -> str:
        """Such as: has 12 joinable small files and 3 sorted runs in a bucket."""
        in_bucket = []
        if self.min_small_files is not None:
            in_bucket.append(counted(facts.joinable_files, "joinable small file"))
        if self.min_sorted_runs is not None:
            in_bucket.append(counted(facts.most_sorted_runs, "sorted run"))
        parts = [f"{' and '.join(in_bucket)} in a bucket"] if in_bucket else []
        if self.min_deleted_share is not None:
            share = facts.marked_share
            known = "an unknown share" if share is None else f"{share:.2%}"
            parts.append(f"{known} of its rows marked")
        return f"has {' and '.join(parts)}"

    def _expected(self) -> str:
        parts = []
        if self.min_small_files is not None:
            parts.append(f"at least {self.min_small_files:,} joinable small files")
        if self.min_sorted_runs is not None:
            parts.append(f"at least {self.min_sorted_runs:,} sorted runs")
        if self.min_deleted_share is not None:
            parts.append(f"more than {self.min_deleted_share:.2%} of the rows marked")
        return " or ".join(parts)

    def _require_known(self, facts: list[CompactionFacts]) -> None:
        unknown = [each for each in facts if each.marked_share is None]
        if unknown and self.min_deleted_share is not None:
            raise NotSupportedError(
                f"min_deleted_share: metadata does not tell how many rows of {_subject(unknown[0])}"
                " are marked: it has deletion vectors without a stored size.",
                "Leave min_deleted_share out, or compact the table once.",
            )


def _subject(facts: CompactionFacts) -> str:
    return f"partition {facts.name}" if facts.values else "the table"


def _document(facts: CompactionFacts) -> dict[str, Any]:
    share = facts.marked_share
    return {
        "name": facts.name,
        "values": dict(facts.values),
        "files": facts.files,
        "bytes": facts.size,
        "small_files": facts.small_files,
        "small_bytes": facts.small_size,
        "joinable_files": facts.joinable_files,
        "marked_share": None if share is None else round(share, 6),
        "sorted_runs": facts.most_sorted_runs,
        "level_0_files": facts.level_0_files,
        "pending_files": facts.pending_files,
    }
