"""The options of a job's command line: the operator writes them, the job reads them."""

from __future__ import annotations

from typing import Final

REQUEST: Final = "--request"
BATCH: Final = "--batch"
CREDENTIALS: Final = "--credentials"
ANSWERS: Final = "--answers"
LAUNCHED: Final = "--launched"
NO_SESSION: Final = "--no-session"
