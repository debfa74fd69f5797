"""Operators for branches that share one history: create, delete, fast-forward, cherry-pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from airflow_provider_merge.operators._shared.maintenance import (
    MaintenanceOperator,
    RemovingOperator,
)
from airflow_provider_merge.operators._shared.values import duration, flag, text, whole_number
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    DeleteBranchSpec,
    FastForwardSpec,
)

_DURATION: Final = "Write a duration such as '30 d', or leave it out in the DAG file."


class CreateBranchOperator(MaintenanceOperator):
    """Creates a branch of ``target``; nothing of that name is replaced.

    :param branch: the name; statements use the branch as ``table$branch_name``
    :param snapshot_id: the snapshot where the branch begins; default: the latest of ``target``
    :param tag: instead of ``snapshot_id``: the tag at whose snapshot the branch begins
    :param retention: a duration such as ``30 d`` (``max-ref-age-ms``): an expiry deletes the branch
        when its latest snapshot is older; default: the table's property
    :param max_snapshot_age: a duration: of the branch, an expiry keeps snapshots that are younger;
        default: that of the expiry
    :param min_snapshots_to_keep: of the branch, an expiry keeps so many of the latest snapshots;
        default: that of the expiry
    :param if_not_exists: leave an existing branch of that name alone, whatever its snapshot
    """

    template_fields: Sequence[str] = (
        *MaintenanceOperator.template_fields,
        "branch",
        "snapshot_id",
        "tag",
        "retention",
        "max_snapshot_age",
        "min_snapshots_to_keep",
        "if_not_exists",
    )
    remedies: ClassVar[Mapping[str, str]] = {
        "retention": _DURATION,
        "max_snapshot_age": _DURATION,
    }

    def __init__(
        self,
        *,
        branch: str,
        snapshot_id: int | str | None = None,
        tag: str | None = None,
        retention: str | None = None,
        max_snapshot_age: str | None = None,
        min_snapshots_to_keep: int | str | None = None,
        if_not_exists: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.branch = branch
        self.snapshot_id = snapshot_id
        self.tag = tag
        duration("retention", retention)
        self.retention = retention
        duration("max_snapshot_age", max_snapshot_age)
        self.max_snapshot_age = max_snapshot_age
        self.min_snapshots_to_keep = min_snapshots_to_keep
        self.if_not_exists = if_not_exists
        self.check_parameters()

    def statement(self) -> CreateBranchSpec:
        """The statement of the rendered parameters."""
        return CreateBranchSpec(
            text("branch", self.branch) or "",
            whole_number("snapshot_id", self.snapshot_id),
            text("tag", self.tag),
            duration("retention", self.retention),
            duration("max_snapshot_age", self.max_snapshot_age),
            whole_number("min_snapshots_to_keep", self.min_snapshots_to_keep),
            flag("if_not_exists", self.if_not_exists),
        )


class DeleteBranchOperator(RemovingOperator):
    """Deletes a branch of ``target``; its snapshots stay until they expire.

    :param branch: the name
    :param if_exists: a missing branch is not an error
    """

    template_fields: Sequence[str] = (*RemovingOperator.template_fields, "branch", "if_exists")

    def __init__(self, *, branch: str, if_exists: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.branch = branch
        self.if_exists = if_exists
        self.check_parameters()

    def statement(self) -> DeleteBranchSpec:
        """The statement of the rendered parameters."""
        return DeleteBranchSpec(
            text("branch", self.branch) or "", flag("if_exists", self.if_exists)
        )


class FastForwardOperator(RemovingOperator):
    """Moves ``target``, a table or a branch of it, forward to another branch or a tag.

    That must build on the latest snapshot of ``target``.

    :param to: the name of the other branch, or of a tag
    """

    template_fields: Sequence[str] = (*RemovingOperator.template_fields, "to")

    def __init__(self, *, to: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.to = to
        self.check_parameters()

    def statement(self) -> FastForwardSpec:
        """The statement of the rendered parameters."""
        return FastForwardSpec(text("to", self.to) or "")


class CherryPickOperator(RemovingOperator):
    """Publishes the changes of a staged snapshot on ``target``, a table or a branch of it.

    A snapshot, and a ``wap.id``, are published once.

    :param snapshot_id: the staged snapshot
    :param wap_id: instead of ``snapshot_id``: the ``wap.id`` under which it was staged
    """

    template_fields: Sequence[str] = (*RemovingOperator.template_fields, "snapshot_id", "wap_id")

    def __init__(
        self, *, snapshot_id: int | str | None = None, wap_id: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.snapshot_id = snapshot_id
        self.wap_id = wap_id
        self.check_parameters()

    def statement(self) -> CherryPickSpec:
        """The statement of the rendered parameters."""
        return CherryPickSpec(
            whole_number("snapshot_id", self.snapshot_id), text("wap_id", self.wap_id)
        )
