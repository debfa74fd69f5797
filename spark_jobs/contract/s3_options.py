"""S3 settings from a catalog's options; operator and job read them the same way.

Option names are those that Paimon's Java and Python libraries read: ``fs.s3.accessKeyId`` and the
like, and the shorter ``s3.access-key`` with any of the prefixes ``s3.``, ``s3a.``, ``fs.s3.`` and
``fs.s3a.``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SCHEMES: Final = ("s3", "s3a", "s3n")
# The names that pypaimon looks up first.
ENDPOINT: Final = "fs.s3.endpoint"
REGION: Final = "fs.s3.region"
ACCESS_KEY: Final = "fs.s3.accessKeyId"
SECRET_KEY: Final = "fs.s3.accessKeySecret"  # noqa: S105 - the name of an option
SESSION_TOKEN: Final = "fs.s3.securityToken"  # noqa: S105 - the name of an option
_PREFIXES: Final = ("s3.", "s3a.", "fs.s3.", "fs.s3a.")


@dataclass(frozen=True, slots=True)
class S3Options:
    """The store's address, and the key to access it; without a key, access is ambient.

    Ambient access uses environment variables, profiles and roles of the machine.
    """

    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    path_style: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> S3Options:
        """The S3 settings in the catalog's options, secrets included."""
        endpoint = _option(options, ENDPOINT, "endpoint")
        if endpoint and "://" not in endpoint:
            endpoint = f"https://{endpoint}"
        path_style = _option(options, None, "path-style-access", "path.style.access")
        return cls(
            endpoint=endpoint,
            region=_option(options, REGION, "region"),
            access_key=_option(options, ACCESS_KEY, "access-key", "access.key"),
            secret_key=_option(options, SECRET_KEY, "secret-key", "secret.key"),
            session_token=_option(
                options,
                SESSION_TOKEN,
                *("session-token", "session.token", "security-token", "security.token"),
            ),
            # Few stores other than Amazon's have a host name per bucket.
            path_style=path_style.lower() == "true" if path_style else endpoint is not None,
        )

    @property
    def addressing_style(self) -> str:
        """How Amazon's client addresses buckets: ``path`` or ``virtual``."""
        return "path" if self.path_style else "virtual"


def _option(options: Mapping[str, str], first: str | None, *names: str) -> str | None:
    candidates = [first] if first else []
    candidates += [prefix + name for prefix in _PREFIXES for name in names]
    return next((options[name] for name in candidates if options.get(name)), None)
