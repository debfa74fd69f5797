"""The connectors that all behaviours hold for: a new one needs its harness and a line here.

Paimon is there once for each kind of table, again with files that pyarrow reads, and again with
each physical plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from spark_jobs.engine.merge.plan_limits import PlanLimits
from tests.conformance.folder_harness import FolderHarness
from tests.conformance.harness import Harness
from tests.conformance.iceberg_harness import IcebergHarness
from tests.conformance.paimon_harness import PaimonHarness
from tests.conformance.tables import SeedTable
from tests.support.forced_plans import Forced
from tests.support.table_kinds import APPEND_COW, APPEND_DV, BUCKETED_DV, BUILT, KEYED, TRACKED

HARNESSES: dict[str, Callable[..., Harness]] = {
    "folder": FolderHarness,
    # The paradigm that no table of Paimon's has.
    "folder-moving": partial(FolderHarness, moves_updates=True),
    **{kind.name: partial(PaimonHarness, kind=kind) for kind in (*BUILT, *TRACKED)},
    "iceberg-cow": IcebergHarness,
    "iceberg-mor": partial(IcebergHarness, marks=True),
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
COPY_ON_WRITE = ("folder", "append-cow")
_ICEBERG: Final = ("iceberg-cow", "iceberg-mor")
_NOT_IN_ICEBERG: Final = re.compile(r"\b(TINYINT|SMALLINT|CHAR|VARCHAR)\b", re.IGNORECASE)


def has_types(connector: str, table: SeedTable) -> bool:
    """Whether tables of a connector can have the columns of ``table``."""
    lacking = any(_NOT_IN_ICEBERG.search(column.type) for column in table.columns)
    return not (connector in _ICEBERG and lacking)
