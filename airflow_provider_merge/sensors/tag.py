"""``TagSensor``: waits for a tag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.sensors.base import TableSensor
from airflow_provider_merge.triggers.gates import TagGate

if TYPE_CHECKING:
    from airflow.sdk import Context


class TagSensor(TableSensor):
    """Waits until the table has a tag. The XCom has the tag and its snapshot.

    :param tag: name of the tag
    """

    template_fields: Sequence[str] = (*TableSensor.template_fields, "tag")

    def __init__(self, *, table: str, tag: str, **kwargs: Any) -> None:
        super().__init__(table=table, **kwargs)
        self.tag = tag

    def gate(self, context: Context) -> TagGate:
        """The tag."""
        name: Any = self.tag  # perhaps what another task returned
        if not isinstance(name, str) or not name.strip() or "/" in name:
            raise invalid("tag", f"{self.tag!r} is not a tag name")
        return TagGate(self.tag)
