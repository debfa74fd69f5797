"""What failures of Amazon's client tell; of an answer its text may hold keys and signatures."""

from __future__ import annotations


def code_of(error: Exception) -> str:
    """Of an answer its code, which is safe to repeat; without an answer the kind of the error."""
    response = getattr(error, "response", None)
    found = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return str(found or type(error).__name__)
