"""``CreateTagOperator`` and ``DeleteTagOperator``: names that keep snapshots readable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.maintenance import (
    MaintenanceOperator,
    RemovingOperator,
)
from airflow_provider_merge.operators._shared.values import flag, text, whole_number
from spark_jobs.contract.maintenance import CreateTagSpec, DeleteTagSpec


class CreateTagOperator(MaintenanceOperator):
    """Gives a snapshot of ``target`` a name that keeps it readable until the tag is deleted.

    :param tag: the name, such as ``nightly-{{ ds }}``
    :param snapshot_id: the snapshot; the latest one when left out
    :param retention: a duration such as ``30 d``, after which ``DeleteTagOperator`` without a name,
        or the format's own engines, may delete the tag; else the table's option
        ``tag.default-time-retained``
    :param if_not_exists: a tag of that name, of whatever snapshot, is left alone
    """

    template_fields: Sequence[str] = (
        *MaintenanceOperator.template_fields,
        "tag",
        "snapshot_id",
        "retention",
        "if_not_exists",
    )

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
        self.retention = retention
        self.if_not_exists = if_not_exists
        self.check_parameters()

    def statement(self) -> CreateTagSpec:
        """The statement of the rendered parameters."""
        return CreateTagSpec(
            text("tag", self.tag) or "",
            whole_number("snapshot_id", self.snapshot_id),
            text("retention", self.retention),
            flag("if_not_exists", self.if_not_exists),
        )


class DeleteTagOperator(RemovingOperator):
    """Deletes a tag of ``target`` and the files that only it kept, or all tags that are over.

    :param tag: the name
    :param expired: true, instead of ``tag``: all tags whose retention is over
    :param if_exists: a tag that is not there is no error
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
