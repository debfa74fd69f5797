"""The character set in which the driver's Java reads and writes names of files. Driver only."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from spark_jobs.engine.runtime.java_names import java_class
from spark_jobs.errors import CatalogError, ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Set by Java when it starts, from the locale of its environment.
_CHARSET: Final = "sun.jnu.encoding"
_UTF8: Final = ("utf-8", "utf8")


def require_utf8_names(spark: SparkSession | None) -> None:
    """Check, before anything is listed, that Java sees files whatever characters their names have.

    Without a session there is no Java.

    Raises:
        CatalogError: LOCALE_MISSING.
    """
    if spark is None:
        return
    charset = str(java_class(spark, "java.lang.System").getProperty(_CHARSET))
    if charset.lower() not in _UTF8:
        raise CatalogError(
            ErrorCode.LOCALE_MISSING,
            f"The driver's Java, on {socket.gethostname()}, knows names of files in {charset} "
            "only, and would not see others.",
            "Give the driver a UTF-8 locale that `locale -a` lists there: LC_ALL=C.UTF-8 in its "
            "environment; in cluster mode, spark.yarn.appMasterEnv.LC_ALL or "
            "spark.kubernetes.driverEnv.LC_ALL in conf.",
        )
