"""What a job prints, in the log of its task: each line at its own level, stack traces folded."""

from __future__ import annotations

import logging
import re
from typing import Any, Final

from spark_jobs.errors import excerpt

# Spark's default pattern of log4j, that of the job's Python driver, and what Java itself warns of.
_LEVEL: Final = re.compile(
    r"(?:\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:\d{3} )?|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} |)"
    r"([A-Z]+)(?::| )"
)
_LEVELS: Final = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "CRITICAL": logging.CRITICAL,
}
# What every driver warns of, and nobody needs to know: what Spark itself chooses.
_HARMLESS: Final = re.compile(
    r"WARNING: Using incubator modules: jdk\.incubator\.vector$"
    r"|Using Spark's default log4j profile: "
    r"|Setting Spark log level to "
    r"|.{0,24}WARN NativeCodeLoader: Unable to load native-hadoop library"
    r"|.{0,24}WARN Utils: (?:Your hostname, .* resolves to a loopback|Set SPARK_LOCAL_IP) "
)
# A frame of a Java stack trace, or "... 12 more".
_FRAME: Final = re.compile(r"at [\w.$/<>]+\(.*\)|\.\.\. \d+ more|at java\.base/")
# Characters: lines of Java's own may hold a whole value of a row.
_LONGEST_LINE: Final = 20_000
_FOLD, _UNFOLD = "::group::Java stack trace", "::endgroup::"


class JobLog:
    """A logger for a hook that logs all lines of a job with ``info``.

    A line without a level has that of the line before it. Airflow's log page folds what stands
    between the lines ``::group::`` and ``::endgroup::``.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._level = logging.INFO
        self._folds = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)

    def info(self, message: str, *args: object) -> None:
        """Log a line of the job; with ``args``, it is the hook's own message."""
        if args:
            self._logger.info(message, *args)
            return
        message = excerpt(message, _LONGEST_LINE)
        is_frame = _FRAME.match(message) is not None
        if is_frame and not self._folds:
            self._logger.log(self._level, _FOLD)
        elif self._folds and not is_frame:
            self._logger.log(self._level, _UNFOLD)
        self._folds = is_frame
        if _HARMLESS.match(message):
            self._logger.debug("%s", message)
            return
        if (level := _LEVEL.match(message)) and level[1] in _LEVELS:
            self._level = _LEVELS[level[1]]
        self._logger.log(self._level, "%s", message)

    def close(self) -> None:
        """End what is folded."""
        if self._folds:
            self._logger.log(self._level, _UNFOLD)
        self._folds = False
