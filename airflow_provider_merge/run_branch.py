"""The name of the branch on which a run prepares what it publishes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from jinja2 import pass_context

from airflow_provider_merge.exceptions import airflow_exception, invalid

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")
_READABLE: Final = 60
_DIGEST: Final = 8


@pass_context
def run_branch(context: Mapping[str, Any], prefix: str = "wap") -> str:
    """A name for a branch that is the same for all tries of a run, and that of no other run.

    Templates of this provider's operators have it as ``{{ run_branch() }}``. It consists of
    letters, digits and ``_``: the prefix, what is readable of the run's id, and a digest of DAG,
    run, and the index of a mapped task group.

    Raises:
        AirflowFailException: a template was imported without its context.
    """
    run, ti = context.get("dag_run"), context.get("ti")
    if run is None or ti is None:
        raise airflow_exception(
            invalid(
                "run_branch",
                "the template has no context, and so no run",
                "Import a file of macros with context: {% import 'x.sql' as x with context %}.",
            )
        )
    index = getattr(ti, "map_index", None)
    parts = [ti.dag_id, run.run_id, -1 if index is None else index]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST]
    names = (_UNSAFE.sub("_", each).strip("_") for each in (prefix, run.run_id[:_READABLE]))
    return "_".join([*names, digest])
