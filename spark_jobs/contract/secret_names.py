"""Secrets where they would be seen: in settings, by their names, and in what a client tells."""

from __future__ import annotations

import logging
import re
from typing import Final

# The end of a name tells that the setting holds a secret.
_HOLDS: Final = re.compile(
    r"(secret|password|passwd|passphrase|passcode|pwd|token|credentials?|gs\.encryption\.key"
    r"|authorization|keystore\.key|auth\.user\.info"
    r"|(secret|access|api|account|private|shared)[._-]?key([._-]?(id|secret))?)"
    # Azure puts the account behind: fs.azure.account.oauth2.client.secret.ACCOUNT.dfs.HOST.
    r"(\.[\w-]+\.(dfs|blob)(\.[\w-]+)+)?$"
    r"|(secret|access|api|account|private)[._-]?key\.[\w.-]+$"
    r"|sas[._-]?fixed[._-]?token\.[\w.-]+$|fs\.azure\.sas\.(?!token\.provider)[\w.-]+$"
    # Short words count as words of their own, such as DB_PASS; a compass holds no secret.
    r"|(^|[._-])(pass|pw|jwt|sas|signature)$",
    re.IGNORECASE,
)
_HUMP: Final = re.compile(r"[a-z0-9](Pass|Pw|Jwt|JWT|Sas|SAS|Signature)$")
# Characters: no setting has more.
_LONGEST_NAME: Final = 500
# The shell's folder, as in spark.executorEnv.PWD.
_FOLDER: Final = re.compile(r"(^|\.)(OLD)?PWD$")
# Anywhere in a name: it may hold one.
_SPEAKS_OF: Final = re.compile(
    r"secret|password|passwd|passphrase|credential|(access|api|account|private)[._-]?key|^header\.",
    re.IGNORECASE,
)
# spark.kubernetes.driver.secretKeyRef.X names a secret of the cluster, it does not hold it.
_REFERENCE: Final = "secretKeyRef."
_IN_URI: Final = re.compile(
    r"://[^/@\s:]*:[^/@\s]*@|[?&;](?:password|passwd|pwd|secret|token|sig)="
    r"|-----BEGIN [A-Z ]{0,20}PRIVATE KEY|^Bearer \S",
    re.IGNORECASE,
)
# A setting within a value: an option of Java, of a command, or a variable in front of one.
_INNER: Final = re.compile(r"(?:^|[\s\"',;])(?:-D|--conf[=\s]|--?)?[\"']?([\w.-]{1,200})=(?=\S)")


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret: reason enough to refuse it."""
    if _REFERENCE in name or _FOLDER.search(name):
        return False
    name = name[-_LONGEST_NAME:]
    return bool(_HOLDS.search(name) or _HUMP.search(name))


def may_be_secret_name(name: str) -> bool:
    """Whether a setting of this name may hold a secret: reason enough to hide its value."""
    return is_secret_name(name) or bool(_SPEAKS_OF.search(name))


def holds_secret(value: str) -> bool:
    """Whether a value has a secret inside: in an address, or as an option such as ``-Dname=…``."""
    return bool(_IN_URI.search(value)) or any(map(is_secret_name, _INNER.findall(value)))


def code_of(error: Exception) -> str:
    """Of an answer its code, which is safe to repeat; without an answer the kind of the error."""
    response = getattr(error, "response", None)
    found = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return str(found or type(error).__name__)


def keep_requests_out_of_logs() -> None:
    """Let the client not log requests, whatever the level: they have the token of a key."""
    for name in ("botocore.auth", "botocore.endpoint"):
        logging.getLogger(name).setLevel(logging.INFO)
