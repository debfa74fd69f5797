"""Random texts of values: right ones, those at the edges of their types, and damaged ones."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable

TYPES = (
    *("STRING", "BINARY", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    *("DECIMAL(6,2)", "DECIMAL(38,0)", "DECIMAL(38,38)", "DECIMAL(18,6)"),
    *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
)
_DAMAGE = [
    *("", "0", "1", "9", "+", "-", ".", "e", "E", "x", " ", "\t", ":", "T", "Z", "_", "a", "\0"),
    *("00", "999", "e5", "1e9", "0x", "\u0663", "é", "NaN"),
]
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_WORDS = [
    "alpha",
    "",
    " ",
    "a b",
    "é",
    "日本",
    "null",
    "NULL",
    "NaN",
    "0",
    "#",
    "\\",
    "'",
    "\t",
    "\u2028",
]


def good_text(chance: random.Random, type_name: str) -> str:
    """A text that most readers take for a value of the type."""
    if type_name in _BITS:
        return _whole(chance, 1 << (_BITS[type_name] - 1))
    if type_name in ("FLOAT", "DOUBLE"):
        return _real(chance)
    if type_name.startswith("DECIMAL"):
        precision, scale = map(int, type_name[8:-1].split(","))
        return _decimal(chance, precision, scale)
    makers: dict[str, Callable[[random.Random], str]] = {
        "BOOLEAN": lambda chance: chance.choice(
            ["true", "false", "TRUE", "no", "Y", "1", "0", "f"]
        ),
        "DATE": lambda chance: str(_moment(chance).date()),
        "TIMESTAMP": lambda chance: (
            _timestamp(chance) + chance.choice(["", "", "Z", "+02:00", "-0930"])
        ),
        "TIMESTAMP_NTZ": _timestamp,
    }
    return makers.get(type_name, lambda chance: "".join(chance.choices(_WORDS, k=2)))(chance)


def any_text(chance: random.Random, type_name: str) -> str:
    """A text that may be damaged, or of another type."""
    text = good_text(chance, type_name if chance.random() < 0.9 else chance.choice(TYPES))
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        at = chance.randint(0, len(text))
        cut = at + chance.choice([0, 0, 1])
        text = text[:at] + chance.choice(_DAMAGE) + text[cut:]
    return text


def _whole(chance: random.Random, limit: int) -> str:
    near = chance.choice([0, limit, -limit, chance.randint(-limit, limit)])
    number = min(max(near + chance.randint(-2, 2), -limit), limit - 1)
    return chance.choice(["", "", "+", "00"] if number >= 0 else [""]) + str(number)


def _real(chance: random.Random) -> str:
    mantissa = chance.choice([chance.random(), chance.uniform(-1e6, 1e6), 1.0, 16777217.0])
    exponent = chance.choice([0, 0, chance.randint(-330, 330), chance.randint(-50, 40)])
    return chance.choice(
        ["NaN", "Inf", "-Infinity", *[f"{mantissa!r}e{exponent}"] * 5, repr(mantissa)]
    )


def _decimal(chance: random.Random, precision: int, scale: int) -> str:
    whole = "".join(chance.choices("0123456789", k=chance.randint(0, precision - scale)))
    fraction = "".join(
        chance.choices("0123456789", k=chance.randint(0 if whole else 1, scale or 1))
    )
    return chance.choice(["", "-", "+"]) + whole + ("." if fraction else "") + fraction


def _moment(chance: random.Random) -> dt.datetime:
    first = chance.choice([(1, 1, 1), (1582, 10, 1), (1900, 1, 1), (1970, 1, 1), (2037, 12, 1)])
    days = chance.choice([chance.randint(0, 60), chance.randint(0, 36500)])
    microseconds = chance.choice([0, 0, 1, 500_000, 999_999])
    seconds = chance.choice([0, 86399, chance.randint(0, 86399)])
    return dt.datetime(*first) + dt.timedelta(days, seconds, microseconds)  # noqa: DTZ001


def _timestamp(chance: random.Random) -> str:
    return _moment(chance).isoformat(chance.choice([" ", "T"]))
