"""What Spark's ``rewrite_data_files`` would find in partitions, by the files of a snapshot.

After Iceberg's ``BinPackRewriteFilePlanner`` with its defaults: a file is small below 75 % of the
target size, and the small files of a partition are put together if there are at least five of
them, or if they fill a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from airflow_provider_merge.metadata.iceberg.manifests import TableFile
from airflow_provider_merge.metadata.iceberg.partitions import Deletes
from airflow_provider_merge.metadata.model import CompactionFacts
from spark_jobs.errors import NotSupportedError

_TARGET: Final = "write.target-file-size-bytes"
_DEFAULT_TARGET: Final = str(512 * 1024 * 1024)
_SMALL_SHARE: Final = 0.75
_LEAST_FILES: Final = 5
_DIGITS: Final = 19


def target_file_size(properties: Mapping[str, str]) -> int:
    """The size in bytes that the table's property gives to data files.

    Raises:
        NotSupportedError: the property is not a positive number.
    """
    text = properties.get(_TARGET, _DEFAULT_TARGET).strip()
    if not (text.isascii() and text.isdecimal() and 0 < len(text) <= _DIGITS and int(text)):
        raise NotSupportedError(
            f"Property {_TARGET}: {text[:100]!r} is not a positive number.",
            "Correct the table's property.",
        )
    return int(text)


def facts_of(
    values: Mapping[str, str | None], files: Sequence[TableFile], deletes: Deletes, target: int
) -> CompactionFacts:
    """What there is to rewrite in one partition."""
    small = [each for each in files if each.size < _SMALL_SHARE * target]
    small_size = sum(each.size for each in small)
    is_worth_it = len(small) >= _LEAST_FILES or (len(small) > 1 and small_size > target)
    rows, visible = sum(each.rows for each in files), deletes.visible(files)
    return CompactionFacts(
        values=values,
        files=len(files),
        size=sum(each.size for each in files),
        small_files=len(small),
        small_size=small_size,
        joinable_files=len(small) if is_worth_it else 0,
        rows=rows,
        marked_rows=None if visible is None else rows - visible,
        sorted_runs={},
        level_0_files=0,
        pending_files=0,
        delete_files=deletes.files_for(files),
    )
