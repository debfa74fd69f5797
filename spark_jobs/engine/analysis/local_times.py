"""Where local times do not go in the order of instants: zones that put clocks back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import TimestampNTZType, TimestampType

from spark_jobs.contract.scd2 import Scd2Source
from spark_jobs.engine.analysis.scd2_roles import Roles
from spark_jobs.engine.runtime.java_names import scala_object
from spark_jobs.errors import AnalysisError, ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ZONE: Final = "spark.sql.session.timeZone"


def require_order_of_times(spark: SparkSession, spec: Scd2Source, roles: Roles) -> None:
    """Refuse instants that become local times in a zone where an hour occurs twice.

    Raises:
        AnalysisError: TYPE_MISMATCH: versions could be stored in the wrong order.
    """
    effective, stored = roles.effective, roles.types[roles.valid_from]
    if effective is None or not isinstance(effective.dataType, TimestampType):
        return
    zone = spark.conf.get(_ZONE) or "UTC"
    if isinstance(stored, TimestampNTZType) and _puts_clocks_back(spark, zone):
        raise AnalysisError(
            ErrorCode.TYPE_MISMATCH,
            f"effective: {effective.name} is a TIMESTAMP, an instant, but {roles.valid_from} a "
            f"TIMESTAMP_NTZ, a local time. {zone}, the session's time zone, has hours that occur "
            "twice: there, a later instant can be an earlier local time",
            f"Make {spec.valid_from} and {spec.valid_to} TIMESTAMP, or set "
            "session_time_zone='UTC'.",
        )


def _puts_clocks_back(spark: SparkSession, zone: str) -> bool:
    """Whether some local time since 1970 occurs twice."""
    utilities = scala_object(spark, "org.apache.spark.sql.catalyst.util.DateTimeUtils")
    rules = utilities.getZoneId(zone).getRules()
    if not rules.getTransitionRules().isEmpty():
        return True
    return any(e.isOverlap() and e.toEpochSecond() >= 0 for e in rules.getTransitions())
