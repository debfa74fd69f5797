"""``CreateTagOperator`` and ``DeleteTagOperator``: names that keep snapshots readable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.maintenance import (
    MaintenanceOperator,
    RemovingOperator,
)
from airflow_provider_merge.operators._shared.values import duration, flag, text, whole_number
from spark_jobs.contract.maintenance import CreateTagSpec, DeleteTagSpec


class CreateTagOperator(MaintenanceOperator):
    """Creates a tag of ``target``, which keeps a snapshot readable until the tag is deleted.

    :param tag: the name, such as ``nightly-{{ ds }}``
    :param snapshot_id: the snapshot; default: the latest
    :param retention: a duration such as ``30 d``, after which ``DeleteTagOperator`` with
        ``expired``, or the format's own engines, may delete the tag; default: the table's option
        ``tag.default-time-retained``
    :param if_not_exists: leave an existing tag of that name alone, whatever its snapshot
    """

    template_fields: Sequence[str] = (
        *MaintenanceOperator.template_fields,
        "tag",
        "snapshot_id",
        "retention",
        "if_not_exists",
    )
    remedies: ClassVar[Mapping[str, str]] = {
        "retention": "Write a duration such as '30 d', or leave it out in the DAG file."
    }

    def __init__(
        self,
        *,
        tag: str,
        snapshot_id: int | str | None = None,
        retention: str | None = None,
        if_not_exists: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tag = tag
        self.snapshot_id = snapshot_id
        duration("retention", retention)
        self.retention = retention
        self.if_not_exists = if_not_exists
        self.check_parameters()

    def statement(self) -> CreateTagSpec:
        """The statement of the rendered parameters."""
        return CreateTagSpec(
            text("tag", self.tag) or "",
            whole_number("snapshot_id", self.snapshot_id),
            duration("retention", self.retention),
            flag("if_not_exists", self.if_not_exists),
        )


class DeleteTagOperator(RemovingOperator):
    """Deletes a tag of ``target``, or all expired tags, and the files that only they kept.

    :param tag: the name
    :param expired: true, instead of ``tag``: delete all tags whose retention is over
    :param if_exists: a missing tag is not an error
    """

    template_fields: Sequence[str] = (
        *RemovingOperator.template_fields,
        "tag",
        "expired",
        "if_exists",
    )

    def __init__(
        self,
        *,
        tag: str | None = None,
        expired: bool | str = False,
        if_exists: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tag = tag
        self.expired = expired
        self.if_exists = if_exists
        self.check_parameters()

    def statement(self) -> DeleteTagSpec:
        """The statement of the rendered parameters."""
        if bool(self.tag) == flag("expired", self.expired):
            raise invalid("tag", "give either the name of a tag or expired=True")
        return DeleteTagSpec(text("tag", self.tag), flag("if_exists", self.if_exists))
