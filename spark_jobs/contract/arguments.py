"""The options of a job's command line: the operator writes them, the job reads them."""

from __future__ import annotations

from typing import Final

REQUEST: Final = "--request"
BATCH: Final = "--batch"
CREDENTIALS: Final = "--credentials"
ANSWERS: Final = "--answers"
LAUNCHED: Final = "--launched"
VERSIONS_TOLD: Final = "--versions-told"
NO_SESSION: Final = "--no-session"
