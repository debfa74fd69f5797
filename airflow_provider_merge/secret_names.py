"""Secrets that people put where they would be seen, found by the name that they have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_provider_merge.exceptions import invalid

# The end of a name tells that the setting holds a secret.
_HOLDS = re.compile(
    r"(secret|access|api|account|private)[._-]?key([._-]?(id|secret)$|(\.[\w.-]+)?$)"
    r"|(secret|password|passwd|passphrase|token|credentials?)$",
    re.IGNORECASE,
)
# Anywhere in a name: it may hold one.
_SPEAKS_OF = re.compile(
    r"secret|password|passwd|passphrase|credential|(access|api|account|private)[._-]?key|^header\.",
    re.IGNORECASE,
)
# spark.kubernetes.driver.secretKeyRef.X names a secret of the cluster, it does not hold it.
_REFERENCE = "secretKeyRef."
_IN_URI = re.compile(
    r"://[^/@\s]*:[^/@\s]*@|[?&;](?:password|passwd|secret|token|sig)=", re.IGNORECASE
)


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret: reason enough to refuse it."""
    return bool(_HOLDS.search(name)) and _REFERENCE not in name


def may_be_secret_name(name: str) -> bool:
    """Whether a setting of this name may hold a secret: reason enough to hide its value."""
    return bool(_HOLDS.search(name) or _SPEAKS_OF.search(name))


def holds_secret(value: str) -> bool:
    """Whether a value is an address with a password, or with a parameter that is a secret."""
    return bool(_IN_URI.search(value))


def refuse_secrets(field: str, settings: Mapping[str, str], remedy: str) -> None:
    """Refuse settings that everybody can see and that hold a secret; its value is not repeated.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field`` and the setting.
    """
    for name, value in settings.items():
        if value and (is_secret_name(name) or holds_secret(value)):
            raise invalid(f"{field}.{name}", "holds a secret, which would be seen there", remedy)
