"""How long what jobs leave in the workspace may still be of use."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# No statement runs as long, and no try of a task comes as late: what is older was left by a job
# that was killed, and that nobody took up again.
ABANDONED_AFTER: Final = timedelta(days=7)
# A try that comes later than this after the one that did the work may not find its result any more.
RESULTS_KEPT: Final = timedelta(days=30)
