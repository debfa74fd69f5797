"""Merging small manifests in a commit to keep the table's manifest list short. Driver only.

The algorithm and the options are those of Paimon's ``ManifestFileMerger``:

=======================================  =======  ==================================================
option                                   default  meaning
=======================================  =======  ==================================================
``manifest.target-file-size``            8 mb     manifests are merged until they have this size
``manifest.merge-min-count``             30       the rest are merged if they are at least this many
``manifest.full-compaction-threshold-    16 mb    if the manifests that are small or hold removals
size``                                            reach this size together, all of them are merged
=======================================  =======  ==================================================

A minor merge keeps removals of files that an earlier manifest adds; a full merge keeps none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.connectors.paimon.format.manifest_entries import ADD
from spark_jobs.connectors.paimon.library import manifest_files
from spark_jobs.formats.paimon.compaction import size_option
from spark_jobs.formats.whole_numbers import whole_number

_MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds for merging manifests; sizes in bytes."""

    target_size: int
    minimum_count: int
    full_size: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Thresholds:
        """The thresholds that a table's options set.

        Raises:
            NotSupportedError: one of them is no size or number.
        """
        return cls(
            size_option(options, "manifest.target-file-size", 8 * _MEGABYTE),
            whole_number(options, "manifest.merge-min-count", 30, least=0),
            size_option(options, "manifest.full-compaction-threshold-size", 16 * _MEGABYTE),
        )


@dataclass(frozen=True, slots=True)
class Merged:
    """The manifests to list, oldest first; ``written`` are those of them that are new."""

    manifests: Sequence[Any]
    written: Sequence[Any] = ()


def merge_manifests(
    table: Any, manifests: Sequence[Any], thresholds: Thresholds, prefix: str
) -> Merged:
    """The listed manifests, with small ones merged into new ones named ``<prefix>-<number>``.

    Raises:
        RuntimeError: the storage failed.
        ValueError: a file was added twice.
    """
    merging = _Merging(table, thresholds, prefix)
    unsettled = [each for each in manifests if merging.is_unsettled(each)]
    if sum(each.file_size for each in unsettled) >= thresholds.full_size:
        return merging.fully(manifests)
    return merging.partly(manifests)


@dataclass(frozen=True, slots=True)
class _Merging:
    table: Any
    thresholds: Thresholds
    prefix: str

    def is_unsettled(self, manifest: Any) -> bool:
        """Whether a full merge always rewrites the manifest."""
        return bool(manifest.num_deleted_files or manifest.file_size < self.thresholds.target_size)

    def partly(self, manifests: Sequence[Any]) -> Merged:
        """Merge neighbours up to the target size, and the rest if there are enough of them."""
        listed: list[Any] = []
        written: list[Any] = []
        candidates: list[Any] = []
        for manifest in manifests:
            candidates.append(manifest)
            if sum(each.file_size for each in candidates) >= self.thresholds.target_size:
                self._merge(candidates, listed, written)
                candidates = []
        if len(candidates) >= self.thresholds.minimum_count:
            self._merge(candidates, listed, written)
        else:
            listed += candidates
        return Merged(listed, written)

    def _merge(self, candidates: Sequence[Any], listed: list[Any], written: list[Any]) -> None:
        if len(candidates) == 1:
            listed += candidates
            return
        entries = [
            e for each in candidates for e in manifest_files.manifest_entries(self.table, each)
        ]
        new = self._write(merged_entries(entries), len(written))
        listed += new
        written += new

    def fully(self, manifests: Sequence[Any]) -> Merged:
        """Drop removed files; large manifests from which nothing was removed stay as they are."""
        read = {id(each): manifest_files.manifest_entries(self.table, each) for each in manifests}
        removed = {
            manifest_files.file_key(entry)
            for entries in read.values()
            for entry in entries
            if entry.kind != ADD
        }
        untouched: list[Any] = []
        merged: list[Any] = []
        for manifest in manifests:
            entries = read[id(manifest)]
            is_hit = any(manifest_files.file_key(entry) in removed for entry in entries)
            if is_hit or self.is_unsettled(manifest):
                merged += entries
            else:
                untouched.append(manifest)
        # Every removed file was added earlier, so both entries cancel out.
        live = [entry for entry in merged_entries(merged) if entry.kind == ADD]
        written = self._write(live, 0)
        return Merged([*untouched, *written], written)

    def _write(self, entries: Sequence[Any], number: int) -> list[Any]:
        prefix = f"{self.prefix}-{number}"
        return manifest_files.write_manifests(
            self.table, entries, self.thresholds.target_size, prefix
        )


def merged_entries(entries: Iterable[Any]) -> list[Any]:
    """The entries that remain when an addition and a later removal of a file cancel each other.

    Raises:
        ValueError: a file was added twice.
    """
    left: dict[Any, Any] = {}
    for entry in entries:
        key = manifest_files.file_key(entry)
        if entry.kind != ADD and key in left and left[key].kind == ADD:
            del left[key]
        elif entry.kind == ADD and key in left and left[key].kind == ADD:
            raise ValueError(f"data file {entry.file.file_name} was added twice")
        else:
            left[key] = entry
    return list(left.values())
