"""How a process of a job ended, in words."""

from __future__ import annotations

import signal
from typing import Final

# A shell, and Spark for its Python driver, report a signal as 128 and its number.
_SIGNALS: Final = 128


def ending(what: str, code: int, memory: str = "") -> str:
    """A sentence about the process ``what`` that ended with ``code``, negative for a signal.

    ``memory`` says how much it was given, if the task can change that.
    """
    number = -code if code < 0 else code - _SIGNALS
    if number not in {each.value for each in signal.Signals}:
        return f"{what} ended with exit code {code}."
    text = f"{what} was killed (signal {number}, {signal.Signals(number).name})"
    if number != signal.SIGKILL:
        return f"{text}."
    return f"{text}, often for lack of memory{memory and f': {memory}'}."
