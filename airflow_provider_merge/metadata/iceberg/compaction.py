"""What a compaction would find in partitions, by the files of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_merge.metadata.due_files import StoredFile, due_files, most_that_fit
from airflow_provider_merge.metadata.iceberg.manifests import TableFile
from airflow_provider_merge.metadata.iceberg.partitions import Deletes
from airflow_provider_merge.metadata.model import CompactionFacts
from spark_jobs.formats.iceberg.compaction import CompactionThresholds


def facts_of(
    values: Mapping[str, str | None],
    files: Sequence[TableFile],
    deletes: Deletes,
    thresholds: CompactionThresholds,
    spec_id: int,
) -> CompactionFacts:
    """What the files of one partition come to; only those of the current ``spec_id`` are joined."""
    small = [each for each in files if thresholds.is_small(each.size)]
    sizes = [each.size for each in small if each.spec_id == spec_id]
    stored = [
        StoredFile.of(
            each.size, each.rows, deletes.marked.get(each.path, 0), thresholds.deleted_share
        )
        for each in files
        if each.spec_id == spec_id
    ]
    target = thresholds.target_file_size
    rows, visible = sum(each.rows for each in files), deletes.visible(files)
    return CompactionFacts(
        values=values,
        files=len(files),
        size=sum(each.size for each in files),
        small_files=len(small),
        small_size=sum(each.size for each in small),
        joinable_files=most_that_fit(sizes, target),
        rows=rows,
        marked_rows=None if visible is None else rows - visible,
        sorted_runs={},
        level_0_files=0,
        pending_files=0,
        delete_files=deletes.files_for(files),
        due=due_files(stored, thresholds.is_small, target, thresholds.min_files),
    )
