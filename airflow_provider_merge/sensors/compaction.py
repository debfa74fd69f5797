"""``CompactionSensor``: waits until a table is worth compacting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.partitions import partition_texts
from airflow_provider_merge.operators._shared.values import (
    flag,
    is_number_of_bytes,
    share,
    text,
    whole_number,
)
from airflow_provider_merge.sensors.base import TableSensor
from airflow_provider_merge.templates import has_template
from airflow_provider_merge.triggers.compaction_gate import CompactionGate

if TYPE_CHECKING:
    from airflow.sdk import Context

_CONDITIONS = ("min_small_files", "min_sorted_runs", "min_deleted_share")
_COUNTED = ("small_file_share", "target_file_size", "include_pending")


class CompactionSensor(TableSensor):
    """Waits until a partition is worth compacting. Give at least one of the ``min_…`` parameters.

    If several are given, one of them is enough. The XCom has the partitions that are worth it, the
    worst first. A ``CompactOperator`` with the same parameters counts in the same way.

    :param min_small_files: a bucket has at least this many small files that fit into one file
    :param min_sorted_runs: a bucket of a table with a primary key has at least this many sorted
        runs: each file of level 0 is one, and so is each level above
    :param min_deleted_share: deletion vectors mark a greater share of the rows (0 to 1)
    :param partition: values of partition columns: only partitions with these; default: all
    :param small_file_share: the share (0 to 1) of the target size below which a file is small;
        default: the table's option ``compaction.small-file-ratio``, else 0.7
    :param target_file_size: the size of files after a compaction, such as ``128 mb``; default: the
        table's option ``target-file-size``, else 256 mb, or 128 mb with a primary key
    :param include_pending: also count files that batch readers do not see yet
    """

    template_fields: Sequence[str] = (
        *TableSensor.template_fields,
        "partition",
        *_CONDITIONS,
        *_COUNTED,
    )

    unusable_defaults: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "target_file_size": is_number_of_bytes
    }

    def __init__(
        self,
        *,
        table: str,
        min_small_files: int | str | None = None,
        min_sorted_runs: int | str | None = None,
        min_deleted_share: float | str | None = None,
        partition: Mapping[str, Any] | None = None,
        small_file_share: float | str | None = None,
        target_file_size: str | None = None,
        include_pending: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(table=table, **kwargs)
        self.min_small_files = min_small_files
        self.min_sorted_runs = min_sorted_runs
        self.min_deleted_share = min_deleted_share
        self.partition = partition
        self.small_file_share = small_file_share
        self.target_file_size = target_file_size
        self.include_pending = include_pending
        given = [getattr(self, name) for name in (*_CONDITIONS, *_COUNTED)]
        if not has_template([partition, *given]):
            self._gate()

    def gate(self, context: Context) -> CompactionGate:
        """A partition that is worth it."""
        return self._gate()

    def _gate(self) -> CompactionGate:
        texts = partition_texts("partition", self.partition)
        gate = CompactionGate(
            min_small_files=_count("min_small_files", self.min_small_files),
            min_sorted_runs=_count("min_sorted_runs", self.min_sorted_runs),
            min_deleted_share=_deleted_share("min_deleted_share", self.min_deleted_share),
            partition=texts or None,
            small_file_share=share("small_file_share", self.small_file_share),
            target_file_size=text("target_file_size", self.target_file_size),
            include_pending=flag("include_pending", self.include_pending),
        )
        if all(getattr(gate, name) is None for name in _CONDITIONS):
            raise invalid(
                _CONDITIONS[0],
                "no condition is given",
                f"Give at least one of {', '.join(_CONDITIONS)}.",
            )
        _ = gate.spec
        return gate


def _count(field: str, value: int | str | None) -> int | None:
    number = whole_number(field, value)
    if number == 1:
        raise invalid(field, "1 is always there: even a table that was just compacted has one")
    return number


def _deleted_share(field: str, value: float | str | None) -> float | None:
    deleted_share = share(field, value)
    if deleted_share in (0, 1):
        raise invalid(field, f"{value!r} is not between 0 and 1", "Write a share such as 0.2.")
    return deleted_share
