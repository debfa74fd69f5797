"""What all statements that change rows can be told: options of their jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

from airflow_provider_merge.assets import require_partition_keys
from airflow_provider_merge.operators._shared.row_checks import CheckedOperator
from airflow_provider_merge.operators._shared.values import (
    is_size_with_unit,
    share,
    whole_number,
)
from airflow_provider_merge.templates import has_template
from spark_jobs.contract.options import Isolation, JobOptions

_OPTIONS = (
    "session_time_zone",
    "target_file_size",
    "rewrite_share",
    "isolation",
    "max_new_partitions",
)


class RowOperator(CheckedOperator):
    """Changes rows of a table.

    :param after_ended_try: if an earlier try committed although its task was ended (marked, cleared
        while it ran, its worker lost): ``fail`` (default) fails with the details, ``skip`` takes
        that commit as the result, ``run`` runs the statement once more
    :param session_time_zone: how Spark reads and writes timestamps without an offset
    :param target_file_size: bytes at which new data files roll
    :param rewrite_share: on a table with deletion vectors, the share of a file's rows (0 to 1)
        above which deleting them rewrites the file; default: what the table or connector sets
    :param isolation: which concurrent commits are a conflict: ``serializable`` (default), those
        that affect what the statement read; ``snapshot``, only those that affect the files that it
        changes
    :param max_new_partitions: the number of partitions that the statement may add; default: what
        ``[merge] max_new_partitions`` says, else 1,000
    :param emit_partition_keys: emit an asset event for each changed partition, with its key (at
        most 100; Airflow 3.3). Such events trigger partitioned DAGs only, no DAG with a plain asset
        schedule
    """

    template_fields: Sequence[str] = (
        *CheckedOperator.template_fields,
        *_OPTIONS,
        "after_ended_try",
    )

    unusable_defaults: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        "target_file_size": is_size_with_unit
    }

    def __init__(
        self,
        *,
        after_ended_try: str = "fail",
        session_time_zone: str | None = None,
        target_file_size: int | str | None = None,
        rewrite_share: float | str | None = None,
        isolation: str | None = None,
        max_new_partitions: int | str | None = None,
        emit_partition_keys: bool = False,
        **kwargs: Any,
    ) -> None:
        self.after_ended_try = after_ended_try
        super().__init__(**kwargs)
        self.session_time_zone = session_time_zone
        self.target_file_size = target_file_size
        self.rewrite_share = rewrite_share
        self.isolation = isolation
        self.max_new_partitions = max_new_partitions
        self.emit_partition_keys = emit_partition_keys
        if emit_partition_keys:
            require_partition_keys()
        decisive = (*_OPTIONS, "preview_rows", "dry_run")
        if not has_template([getattr(self, name) for name in decisive]):
            # Not those of a subclass: its parameters are set later.
            RowOperator.job_options(self)

    def job_options(self) -> JobOptions:
        """The options of the request, from rendered parameters.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        options = JobOptions()
        size = whole_number("target_file_size", self.target_file_size)
        return JobOptions(
            session_time_zone=self.session_time_zone or options.session_time_zone,
            target_file_size=options.target_file_size if size is None else size,
            rewrite_share=share("rewrite_share", self.rewrite_share),
            isolation=cast("Isolation", self.isolation) if self.isolation else None,
            max_new_partitions=whole_number("max_new_partitions", self.max_new_partitions),
            preview_rows=self.previewed_rows(),
        )
