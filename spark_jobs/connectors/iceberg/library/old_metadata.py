"""Removing metadata files that a commit has dropped from the table's log. Driver only.

Servers do it by themselves; of other catalogs, it is the client's part.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress
from typing import Any, Final

_ENABLED: Final = "write.metadata.delete-after-commit.enabled"
_ENDINGS: Final = (".metadata.json", ".metadata.json.gz")


def remove_old_metadata(before: Any, done: Any) -> None:
    """Remove what the log of pyiceberg's table ``before`` has and that of ``done`` lacks.

    ``done`` is pyiceberg's answer to the commit. Only if the table's property says so, and only
    files beside the new one: the log may name anything. Failures leave files behind.
    """
    if done.metadata.properties.get(_ENABLED, "false").lower() != "true":
        return
    folder = posixpath.dirname(done.metadata_location)
    kept = {each.metadata_file for each in done.metadata.metadata_log}
    for location in {each.metadata_file for each in before.metadata.metadata_log} - kept:
        if posixpath.dirname(location) == folder and location.endswith(_ENDINGS):
            with suppress(Exception):
                before.io.delete(location)
