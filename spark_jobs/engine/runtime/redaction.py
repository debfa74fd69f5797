"""Removes a job's secrets from its errors and logs. Standard library only."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from spark_jobs.errors import JobError, error_of

# Shorter ones occur in ordinary words; nobody should use them as secrets.
_SHORTEST = 6
_MASK = "***"


@dataclass(frozen=True, slots=True)
class Redaction:
    """Replaces each of ``secrets`` with ``***``."""

    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redaction:
        """The redaction of ``secrets``, except those with fewer than six characters."""
        long = {secret for secret in secrets if len(secret) >= _SHORTEST}
        return cls(tuple(sorted(long, key=len, reverse=True)))

    def text(self, text: str) -> str:
        """``text`` without the secrets."""
        if not self.secrets:
            return text
        return re.sub("|".join(map(re.escape, self.secrets)), _MASK, text)

    def error(self, error: JobError) -> JobError:
        """The same error without the secrets."""
        message, remedy = self.text(error.message), self.text(error.remedy)
        return error_of(error.code, message, remedy, name=self.text(error.name))

    def guard_logs(self) -> None:
        """Remove the secrets from everything that the root logger's handlers print from now on."""
        for handler in logging.getLogger().handlers:
            handler.setFormatter(_RedactingFormatter(handler.formatter, self))


class _RedactingFormatter(logging.Formatter):
    """Removes the secrets from the output of another formatter, traceback included."""

    def __init__(self, inner: logging.Formatter | None, redaction: Redaction) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        return self._redaction.text(self._inner.format(record))
