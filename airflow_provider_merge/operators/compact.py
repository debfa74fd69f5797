"""``CompactOperator``: the same rows in fewer files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

from airflow_provider_merge.operators._shared.dry_run_of import DryRunOperator
from airflow_provider_merge.operators._shared.partitions import partition_specs
from airflow_provider_merge.operators._shared.values import (
    byte_size,
    flag,
    is_number_of_bytes,
    names,
    share,
    text,
    whole_number,
)
from airflow_provider_merge.templates import has_template, is_template
from spark_jobs.contract.compaction import CompactMode, CompactSpec, Manifests
from spark_jobs.contract.options import JobOptions

_SIZES = ("target_file_size", "max_bytes")


class CompactOperator(DryRunOperator):
    """Puts the rows of ``target`` into fewer files, without changing them.

    Small files become larger ones, deletion vectors are applied, and the sorted runs of a table
    with a primary key are merged. Other writers may go on meanwhile. No asset event is sent. Guide:
    docs/operators/compact.md.

    :param partitions: list of dicts of partition column → value; a dict that does not name every
        partition column selects all partitions with its values; of a table without partition
        columns ``[{}]``; default: all partitions
    :param mode: ``minor`` (default) rewrites what is worth it, ``full`` all that is not yet as a
        compaction leaves it, ``deletes`` only position deletes
    :param session_time_zone: the zone in which values of partitions are read
    :param target_file_size: the size of new files with a unit, such as ``128 mb``; default: the
        table's option, as of the other thresholds
    :param min_files: how many small files ``minor`` puts together at least
    :param small_file_share: the share (0 to 1) of ``target_file_size`` below which a file is small
    :param deleted_share: the share (0 to 1) of marked rows above which a file is rewritten
    :param sorted_runs: on a table with a primary key, the number of sorted runs from which on
        ``minor`` merges a bucket
    :param max_bytes: read at most so much in one run, with a unit, such as ``100 gb``
    :param max_partitions: compact at most so many partitions in one run
    :param include_pending: true: merge also records that batch readers do not see yet, and so make
        them visible
    :param sort_by: list of columns that sort the rows of new files, each perhaps with ASC or DESC,
        and NULLS FIRST or NULLS LAST, behind it; with ``full``, everything is rewritten
    :param zorder_by: list of columns by whose z-value rows are sorted, in place of ``sort_by``
    :param manifests: ``rewrite`` the table's manifests behind the compaction, clustered by
        partition, or ``only`` them, if its format has such; default: ``keep`` them as they are
    """

    template_fields: Sequence[str] = (
        *DryRunOperator.template_fields,
        "partitions",
        "mode",
        "session_time_zone",
        "target_file_size",
        "min_files",
        "small_file_share",
        "deleted_share",
        "sorted_runs",
        "max_bytes",
        "max_partitions",
        "include_pending",
        "sort_by",
        "zorder_by",
        "manifests",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DryRunOperator.template_fields_renderers,
        "partitions": "json",
    }
    emits_asset_event = False
    unusable_defaults: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "target_file_size": is_number_of_bytes
    }
    remedies: ClassVar[Mapping[str, str]] = {
        "partitions": "To compact all partitions, leave it out in the DAG file; where there may be "
        "none, skip the task."
    }

    def __init__(
        self,
        *,
        partitions: Sequence[Mapping[str, Any]] | None = None,
        mode: str = "minor",
        session_time_zone: str | None = None,
        target_file_size: str | None = None,
        min_files: int | str | None = None,
        small_file_share: float | str | None = None,
        deleted_share: float | str | None = None,
        sorted_runs: int | str | None = None,
        max_bytes: str | None = None,
        max_partitions: int | str | None = None,
        include_pending: bool | str = False,
        sort_by: Sequence[str] | None = None,
        zorder_by: Sequence[str] | None = None,
        manifests: str = "keep",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions
        self.mode = mode
        self.session_time_zone = session_time_zone
        self.target_file_size = target_file_size
        self.min_files = min_files
        self.small_file_share = small_file_share
        self.deleted_share = deleted_share
        self.sorted_runs = sorted_runs
        self.max_bytes = max_bytes
        self.max_partitions = max_partitions
        self.include_pending = include_pending
        self.sort_by = sort_by
        self.zorder_by = zorder_by
        self.manifests = manifests
        self.check_parameters()

    def statement(self) -> CompactSpec:
        """The statement from rendered parameters."""
        return CompactSpec(
            partitions=self._partitions(),
            mode=cast("CompactMode", text("mode", self.mode) or "minor"),
            target_file_size=byte_size("target_file_size", self.target_file_size),
            min_files=whole_number("min_files", self.min_files),
            small_file_share=share("small_file_share", self.small_file_share),
            deleted_share=share("deleted_share", self.deleted_share),
            sorted_runs=whole_number("sorted_runs", self.sorted_runs),
            max_bytes=byte_size("max_bytes", self.max_bytes),
            max_partitions=whole_number("max_partitions", self.max_partitions),
            include_pending=flag("include_pending", self.include_pending),
            sort_by=names("sort_by", self.sort_by),
            zorder_by=names("zorder_by", self.zorder_by),
            manifests=cast("Manifests", text("manifests", self.manifests) or "keep"),
        )

    def _partitions(self) -> tuple[dict[str, str], ...]:
        if self.partitions is None:
            return ()
        # As sensors and hooks tell them. Empty texts do no harm: rows stay the same.
        return partition_specs("partitions", self.partitions, blank=True)

    def job_options(self) -> JobOptions:
        """Only the time zone, in which values of partitions are read."""
        zone = self.session_time_zone or JobOptions().session_time_zone
        return JobOptions(session_time_zone=zone)

    def check_parameters(self) -> None:
        """Check when the DAG is parsed: sizes always, the rest unless a parameter is a template.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        for name in _SIZES:
            value = getattr(self, name)
            if not is_template(value):
                byte_size(name, value)
        if not has_template([getattr(self, name) for name in self.template_fields]):
            self.check_request()
