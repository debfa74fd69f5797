"""How long files that jobs leave in the workspace may still be needed."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# No statement runs this long, and no retry of a task comes this late: anything older was left by a
# job that was killed and not retried.
ABANDONED_AFTER: Final = timedelta(days=7)
# A retry that starts later than this after the try that did the work may not find its result.
RESULTS_KEPT: Final = timedelta(days=30)
