"""Upgrades of the format's version, which pyiceberg makes up to version 2. Driver only."""

from __future__ import annotations

from functools import cache
from typing import Any


def upgrade_to(version: int) -> Any:
    """Pyiceberg's update that makes a table one of a later version.

    A server gets what pyiceberg would send; where the client applies it, version 3 is known, too.
    """
    arguments: dict[str, Any] = {"format-version": version}
    return _upgrade()(**arguments)


@cache
def _upgrade() -> Any:
    from pyiceberg.table import update

    class Upgrade(update.UpgradeFormatVersionUpdate):
        """One that this project applies itself."""

    update._apply_table_update.register(Upgrade, _applied)  # noqa: SLF001 - there is no other way
    return Upgrade


def _applied(wanted: Any, metadata: Any, context: Any) -> Any:
    from pyiceberg.table.metadata import TableMetadataUtil

    if wanted.format_version <= metadata.format_version:
        return metadata
    context.add_update(wanted)
    upgraded = metadata.model_copy(update={"format_version": wanted.format_version})
    return TableMetadataUtil._construct_without_validation(upgraded)  # noqa: SLF001
