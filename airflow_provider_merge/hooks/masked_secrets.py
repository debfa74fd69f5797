"""Secrets of connections become known to Airflow's maskers of logs as soon as they are composed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from airflow.providers.common.compat.sdk import mask_secret, redact

# Shorter ones, such as "false", occur in ordinary lines; jobs do not look for them either.
_SHORTEST: Final = 6
_MASK: Final = "***"
# What the log handlers of Airflow's own processes go by: the API server, the scheduler.
_OF_SERVERS: Final = "airflow._shared.secrets_masker"


def masked(secrets: Mapping[str, str]) -> dict[str, str]:
    """``secrets``, all of which are masked in the logs of this process, and of its supervisor."""
    for secret in secrets.values():
        if len(secret) >= _SHORTEST:
            _mask(secret)
    return dict(secrets)


def _mask(secret: str) -> None:
    # Not each time: in a task, it is a message to the supervisor.
    if redact(secret) != _MASK:
        mask_secret(secret)
    servers = sys.modules.get(_OF_SERVERS)
    if servers is not None:
        servers.mask_secret(secret)
