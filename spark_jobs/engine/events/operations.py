"""Columns of events on their way to rows."""

from __future__ import annotations

from typing import Final

from spark_jobs.contract.identifiers import RESERVED_PREFIX

# The operation of an event, as text, until it is told by _change_type.
OPERATION: Final = f"{RESERVED_PREFIX}operation"
# The operation of a row that is left by an update of its key; no document says so.
BEFORE_MOVE: Final = f"{RESERVED_PREFIX}moved"
# A row that came by one, where no row of its key was.
AFTER_MOVE: Final = f"{RESERVED_PREFIX}came"
