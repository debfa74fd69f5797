"""Who can reach a job's processes: on a local master nobody, elsewhere as a rule only each other.

A driver serves the blocks of broadcasts and of cached rows, and a broadcast may hold credentials.
By itself Spark binds it to the machine's address and asks nobody who he is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_LOOPBACK: Final = "127.0.0.1"
_AUTHENTICATE: Final = "spark.authenticate"
_LOCAL: Final = re.compile(r"local(\[.*\])?")


def protected(settings: Mapping[str, str]) -> dict[str, str]:
    """What protects a job with these settings; what is set already stays as it is.

    Spark makes a secret for each application by itself, in memory or in what YARN and Kubernetes
    hand to executors. A standalone cluster has one secret for all, which it must set itself.
    """
    master = settings.get("spark.master", "")
    own = {}
    if _LOCAL.fullmatch(master):
        own = {"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK}
        own[_AUTHENTICATE] = "true"
    elif master.startswith("k8s://") or (master == "yarn" and _knows_secrets(settings)):
        own[_AUTHENTICATE] = "true"
    return {name: value for name, value in own.items() if name not in settings}


def _knows_secrets(settings: Mapping[str, str]) -> bool:
    """Whether a YARN application may have a secret of its own.

    In cluster mode its driver runs already. A shuffle service of the cluster has to be told to ask
    for secrets, or else executors cannot register with it.
    """
    shuffle = settings.get("spark.shuffle.service.enabled", "false")
    return settings.get("spark.submit.deployMode") != "cluster" and shuffle.lower() != "true"
