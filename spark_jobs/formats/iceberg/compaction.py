"""When files of an Iceberg table are worth compacting: what is asked for, the table's property, or
the defaults of Iceberg's ``BinPackRewriteFilePlanner``. Pages count with what the job goes by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import TableName
from spark_jobs.contract.sizes import parse_size
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg.transforms import VOID, is_sortable
from spark_jobs.formats.whole_numbers import whole_number

TARGET_FILE_SIZE: Final = "write.target-file-size-bytes"
_DEFAULT_TARGET: Final = 512 * 2**20
_MANIFEST_SIZE: Final = "commit.manifest.target-size-bytes"
_DEFAULT_MANIFEST: Final = 8 * 2**20
_MIN_FILES: Final = 5
_SMALL_SHARE: Final = 0.75
_DELETED_SHARE: Final = 0.3


@dataclass(frozen=True, slots=True)
class CompactionThresholds:
    """The fields of ``CompactSpec`` with their values; ``target_file_size`` is in bytes."""

    target_file_size: int
    min_files: int
    small_file_share: float
    deleted_share: float

    @classmethod
    def of(cls, spec: CompactSpec, properties: Mapping[str, str]) -> CompactionThresholds:
        """What ``spec`` asks for; where it does not, the table's property or Iceberg's defaults.

        Raises:
            NotSupportedError: the property is needed and is not a positive number.
        """
        target = spec.target_file_size
        share, deleted = spec.small_file_share, spec.deleted_share
        return cls(
            whole_number(properties, TARGET_FILE_SIZE, _DEFAULT_TARGET)
            if target is None
            else parse_size(target),
            spec.min_files or _MIN_FILES,
            _SMALL_SHARE if share is None else share,
            _DELETED_SHARE if deleted is None else deleted,
        )

    def is_small(self, size: int) -> bool:
        """Whether a file of so many bytes is small."""
        return size < self.target_file_size * self.small_file_share


def refuse_uncompactable(name: TableName, metadata: Any) -> None:
    """Refuse a table with pyiceberg's ``metadata`` that is not compacted here.

    Raises:
        NotSupportedError: it has a sort order by what rows are not sorted by here.
    """
    schema = metadata.schema()
    columns = {each.field_id: each for each in schema.fields}
    order = metadata.sort_order_by_id(metadata.default_sort_order_id)
    for field in order.fields if order else ():
        source, transform = columns.get(field.source_id), str(field.transform)
        kind = "" if source is None else str(source.field_type).partition("<")[0]
        if transform != VOID and not is_sortable(kind, transform):
            column = schema.find_column_name(field.source_id) or f"field {field.source_id}"
            raise NotSupportedError(
                f"{name} has a sort order with {transform} of {column}"
                f"{f' ({kind})' if kind else ''}, by which rows are not sorted here.",
                "Use Spark's procedure rewrite_data_files with the strategy sort.",
            )


def target_manifest_size(properties: Mapping[str, str]) -> int:
    """The size of manifests that are written anew, in bytes.

    Raises:
        NotSupportedError: the property is not a positive number.
    """
    return whole_number(properties, _MANIFEST_SIZE, _DEFAULT_MANIFEST)
