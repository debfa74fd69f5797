"""The connectors that all behaviours hold for: a new one needs its harness and a line here.

Paimon is there once for each kind of table, again with files that pyarrow reads, and again with
each physical plan. Iceberg is there for each kind of table, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from spark_jobs.engine.merge.physical_plan import PlanLimits
from tests.conformance.folder_harness import FolderHarness
from tests.conformance.harness import Harness
from tests.conformance.iceberg_harness import IcebergHarness
from tests.conformance.paimon_harness import PaimonHarness
from tests.support.forced_plans import Forced
from tests.support.table_kinds import (
    APPEND_COW,
    APPEND_DV,
    BUCKETED_DV,
    BUILT,
    ICEBERG,
    ICEBERG_BUCKETS,
    ICEBERG_DAYS,
    ICEBERG_TRUNCATED,
    KEYED,
    TRACKED,
)

HARNESSES: dict[str, Callable[..., Harness]] = {
    "folder": FolderHarness,
    # The paradigm that no table of Paimon's has.
    "folder-moving": partial(FolderHarness, moves_updates=True),
    **{kind.name: partial(PaimonHarness, kind=kind) for kind in (*BUILT, *TRACKED)},
    **{kind.name: partial(IcebergHarness, kind=kind) for kind in ICEBERG},
    "append-cow-pyarrow": partial(PaimonHarness, kind=APPEND_COW, reader="pyarrow"),
    "append-dv-pyarrow": partial(PaimonHarness, kind=APPEND_DV, reader="pyarrow"),
}
_FORCED: tuple[Forced, ...] = ("join", "located", "prepared")
_PLANNED = [(kind, plan) for kind in (APPEND_COW, APPEND_DV, BUCKETED_DV) for plan in _FORCED]
# Connectors whose merges run under one plan wherever it can run them.
PLANS: dict[str, Forced] = {f"{kind.name}-{plan}": plan for kind, plan in _PLANNED}
PLANNED_HARNESSES: dict[str, Callable[..., Harness]] = {
    f"{kind.name}-{plan}": partial(PaimonHarness, kind=kind) for kind, plan in _PLANNED
}
# Limits under which a connector runs: small tables get a dynamic filter too.
LIMITS = {
    "append-cow-pyarrow": PlanLimits(filter_share=1000.0),
    "append-dv-pyarrow": PlanLimits(filter_share=1000.0),
}
KEYED_HARNESSES: dict[str, Callable[..., Harness]] = {
    kind.name: partial(PaimonHarness, kind=kind) for kind in KEYED
}
# Iceberg tables that are partitioned by a transform of a column, and not by ``p``.
TRANSFORMED_HARNESSES: dict[str, Callable[..., Harness]] = {
    kind.name: partial(IcebergHarness, kind=kind)
    for kind in (*ICEBERG_BUCKETS, *ICEBERG_DAYS, *ICEBERG_TRUNCATED)
}
COPY_ON_WRITE = ("folder", "append-cow")
BY_DAY = tuple(kind.name for kind in ICEBERG_DAYS)
