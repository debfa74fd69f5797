"""The connectors that all behaviours hold for: a new one needs its harness and a line here.

Paimon is there once for each kind of table, and again with files that pyarrow reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from spark_jobs.engine.merge.plan_limits import PlanLimits
from tests.conformance.folder_harness import FolderHarness
from tests.conformance.harness import Harness
from tests.conformance.paimon_harness import PaimonHarness
from tests.support.table_kinds import APPEND_COW, APPEND_DV, BUCKETED_DV, BUILT, KEYED

HARNESSES: dict[str, Callable[..., Harness]] = {
    "folder": FolderHarness,
    # The paradigm that no table of Paimon's has.
    "folder-moving": partial(FolderHarness, moves_updates=True),
    **{kind.name: partial(PaimonHarness, kind=kind) for kind in BUILT},
    "append-cow-pyarrow": partial(PaimonHarness, kind=APPEND_COW, reader="pyarrow"),
    "append-dv-pyarrow": partial(PaimonHarness, kind=APPEND_DV, reader="pyarrow"),
    "append-cow-located": partial(PaimonHarness, kind=APPEND_COW),
    "append-dv-located": partial(PaimonHarness, kind=APPEND_DV),
    "bucketed-dv-located": partial(PaimonHarness, kind=BUCKETED_DV),
}
# Limits under which a connector runs: small tables get a dynamic filter too.
LIMITS = {
    "append-cow-pyarrow": PlanLimits(filter_share=1000.0),
    "append-dv-pyarrow": PlanLimits(filter_share=1000.0),
    "append-cow-located": PlanLimits(located_share=1000.0),
    "append-dv-located": PlanLimits(located_share=1000.0),
    "bucketed-dv-located": PlanLimits(located_share=1000.0),
}
KEYED_HARNESSES: dict[str, Callable[..., Harness]] = {
    kind.name: partial(PaimonHarness, kind=kind) for kind in KEYED
}
COPY_ON_WRITE = ("folder", "append-cow")
