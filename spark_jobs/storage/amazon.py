"""Sessions of Amazon's client for services other than S3. Driver only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

CONNECT_SECONDS: Final = 10
ANSWER_SECONDS: Final = 60
# Seconds before a request is repeated.
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0)
_BUSY: Final = ("ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequests")


def bounded_session(repeated: Iterable[str]) -> Any:
    """A session of botocore whose requests have time-outs.

    Requests of the kinds ``repeated`` (``glue.GetTable``) are sent again where the service was too
    busy to answer them: they must change nothing.
    """
    from botocore.config import Config
    from botocore.session import Session

    session = Session()
    bounds = Config(connect_timeout=CONNECT_SECONDS, read_timeout=ANSWER_SECONDS)
    session.set_default_client_config(bounds)
    for each in repeated:
        session.register(f"needs-retry.{each}", _pause)
    return session


def _pause(attempts: int, response: Any, **_: Any) -> float | None:
    """Seconds before a request is sent again; None: its answer, or the lack of one, stands."""
    if response is None or attempts > len(_PAUSES):
        return None
    http, parsed = response
    code = parsed.get("Error", {}).get("Code") if isinstance(parsed, dict) else None
    is_busy = http.status_code in (429, 503) or code in _BUSY
    return _PAUSES[attempts - 1] if is_busy else None
