"""What a run must still have right before it publishes."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.engine.runtime.fence import Fence
from spark_jobs.engine.runtime.last_look import LastLook
from spark_jobs.engine.runtime.lease import Lease


@dataclass(frozen=True, slots=True)
class Permission:
    """A task that still runs, a try that was not given up, and the lease of its run."""

    last_look: LastLook
    fence: Fence
    lease: Lease

    def require(self) -> None:
        """Check that the run may publish.

        Who gives a try up puts the fence first and takes the leases then, so that a lease that is
        held after there was no fence was not taken from the run before.

        Raises:
            CommitError: RUN_GIVEN_UP.
        """
        self.last_look.require_task()
        # The answer may have taken minutes.
        self.fence.require_none()
        self.lease.require()
