"""What Amazon's client may tell: the text of an answer and a signed request may hold secrets."""

from __future__ import annotations

import logging


def code_of(error: Exception) -> str:
    """Of an answer its code, which is safe to repeat; without an answer the kind of the error."""
    response = getattr(error, "response", None)
    found = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return str(found or type(error).__name__)


def keep_requests_out_of_logs() -> None:
    """Let the client not log requests, whatever the level: they have the token of a key."""
    for name in ("botocore.auth", "botocore.endpoint"):
        logging.getLogger(name).setLevel(logging.INFO)
