"""The connectors that all behaviours hold for: a new one needs its harness and a line here.

Paimon is there once for each kind of table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.conformance.folder_harness import FolderHarness
from tests.conformance.harness import Harness
from tests.conformance.paimon_harness import PaimonHarness
from tests.table_kinds import BUILT

HARNESSES: dict[str, Callable[..., Harness]] = {
    "folder": FolderHarness,
    **{kind.name: partial(PaimonHarness, kind=kind) for kind in BUILT},
}
COPY_ON_WRITE = ("folder", "append-cow")
