"""The connectors that all behaviours hold for: a new one needs its harness and a line here."""

from __future__ import annotations

from tests.conformance.folder_harness import FolderHarness
from tests.conformance.harness import Harness
from tests.conformance.paimon_harness import PaimonHarness

HARNESSES: dict[str, type[Harness]] = {"folder": FolderHarness, "paimon": PaimonHarness}
