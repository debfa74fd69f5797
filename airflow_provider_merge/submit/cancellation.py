"""Ends a job's application on a cluster, as well as it can be asked to.

Nothing relies on it: what the job may still publish is decided by its fence in the workspace.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

import requests
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

log = logging.getLogger(__name__)

# In the extra of a Spark connection, as the Spark provider calls it.
RESOURCE_MANAGER: Final = "yarn_resourcemanager_webapp_address"
_APPLICATION: Final = re.compile(r"application_\d+_\d+")
_TIMEOUT: Final = 10.0


def cancel_application(
    hook: SparkSubmitHook, application_id: str, extra: Mapping[str, Any]
) -> bool:
    """Ask the cluster to end what ``hook`` submitted, and log what was not ended. Raises nothing.

    ``application_id`` is empty as long as it is unknown, ``extra`` that of the Spark connection.
    Returns whether its launcher is about to end by itself.
    """
    # With another log format than Spark's, only the hook has read an id.
    read = hook._yarn_application_id or ""  # noqa: SLF001
    application_id = application_id or (read if _APPLICATION.fullmatch(read) else "")
    pod = hook._kubernetes_driver_pod or ""  # noqa: SLF001
    if not pod and not (hook._is_yarn and application_id):  # noqa: SLF001
        log.warning(
            "No application was known yet when the task was ended. If the cluster accepts one "
            "later, it ends before it changes anything."
        )
        return False
    try:
        if not pod:
            address = str(extra.get(RESOURCE_MANAGER) or "").strip()
            return _cancel_on_yarn(hook, application_id, address)
        hook._delete_driver_pod()  # noqa: SLF001
    except Exception as error:  # noqa: BLE001 - of clients whose errors have no common base
        _tell(pod or application_id, f"{type(error).__name__}: {error}")
        return False
    return True


def _cancel_on_yarn(hook: SparkSubmitHook, application: str, address: str) -> bool:
    """By YARN's own REST, because there may be no client of YARN on this machine."""
    if not address:
        _tell(application, f"the Spark connection's extra has no {RESOURCE_MANAGER}")
        return False
    base = address if "://" in address else f"http://{address}"
    answer = requests.put(
        f"{base.rstrip('/')}/ws/v1/cluster/apps/{application}/state",
        json={"state": "KILLED"},
        auth=hook._resolved_yarn_rm_auth,  # noqa: SLF001
        timeout=_TIMEOUT,
    )
    if answer.status_code not in (requests.codes.ok, requests.codes.accepted):
        _tell(application, f"YARN's resource manager answered with HTTP {answer.status_code}")
        # One that is not submitted yet is not known: its launcher, without its files, fails.
        return answer.status_code == requests.codes.not_found
    log.info("Asked YARN to end application %s.", application)
    return True


def _tell(application: str, reason: str) -> None:
    log.warning(
        "Application %s was not ended on the cluster: %s. If it still runs, it publishes nothing "
        "any more, but uses the cluster until it notices that; end it there.",
        application,
        reason,
    )
