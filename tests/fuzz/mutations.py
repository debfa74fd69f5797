"""Damaged and hostile forms of a file's bytes; standard library only, so that both sides use it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

# What a name in metadata must never lead to: the decoy of the tests lies there.
OUTSIDE = "outside-of-the-warehouse"
TRAVERSALS = (
    "..",
    "../..",
    f"../{OUTSIDE}",
    f"../../{OUTSIDE}",
    f"../../../{OUTSIDE}",
    f"../../../../{OUTSIDE}",
    f"..%2f..%2f..%2f{OUTSIDE}",
    f"/tmp/{OUTSIDE}",
    f"file:///tmp/{OUTSIDE}",
    f"s3://bucket/{OUTSIDE}",
)
TEXTS = (*TRAVERSALS, "", "\0", "a\0b", "x" * 5000, "'; DROP TABLE t; --", "`", "\ud800", "ü\n")
NUMBERS = (-1, 0, 1, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63))
_JSON_VALUES = (
    *TEXTS,
    *NUMBERS,
    2**63,
    10**400,
    1.5,
    1e308,
    None,
    True,
    [],
    {},
    [None],
    {"a": []},
)
_DEEP = 50_000


def damaged_bytes(data: bytes, random: Random) -> bytes:
    """A few bytes changed, removed, added, or the end cut off."""
    return random.choice(_BYTE_MUTATIONS)(data, random)


def hostile_json(data: bytes, random: Random) -> bytes:
    """A JSON document with one part replaced, removed or twice there, or nested too deep."""
    document = json.loads(data)
    places = list(_places(document, ()))
    place = random.choice(places) if places else ()
    match random.randrange(8):
        case 0:
            return json.dumps(_without(document, place)).encode()
        case 1:
            marker = "the place for it"
            text = json.dumps(_with(document, place, marker))
            deep = random.choice((("[", "]"), ('{"a":', "}")))
            nested = deep[0] * _DEEP + "0" + deep[1] * _DEEP
            return text.replace(json.dumps(marker), nested).encode()
        case _:
            return json.dumps(_with(document, place, random.choice(_JSON_VALUES))).encode()


def _places(value: Any, path: tuple[Any, ...]) -> Any:
    items = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield (*path, key)
        yield from _places(item, (*path, key))


def _with(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    document = copy.deepcopy(document)
    _parent(document, place)[place[-1]] = value
    return document


def _without(document: Any, place: tuple[Any, ...]) -> Any:
    if not place:
        return None
    document = copy.deepcopy(document)
    del _parent(document, place)[place[-1]]
    return document


def _parent(document: Any, place: tuple[Any, ...]) -> Any:
    for step in place[:-1]:
        document = document[step]
    return document


def _flipped(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _overwritten(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    if changed:
        start = random.randrange(len(changed))
        length = random.choice((1, 4, 8, 64))
        filler = random.choice((b"\xff", b"\x00", b"\x80", b"\x7f"))
        changed[start : start + length] = filler * len(changed[start : start + length])
    return bytes(changed)


def _truncated(data: bytes, random: Random) -> bytes:
    return data[: random.choice((0, 1, random.randrange(len(data) + 1), max(len(data) - 1, 0)))]


def _grown(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    return data[:start] + random.randbytes(random.choice((1, 7, 300))) + data[start:]


def _repeated(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    end = min(len(data), start + random.choice((8, 64, 1000)))
    return data[:end] + data[start:]


_BYTE_MUTATIONS: tuple[Callable[[bytes, Random], bytes], ...] = (
    _flipped,
    _flipped,
    _flipped,
    _overwritten,
    _overwritten,
    _truncated,
    _grown,
    _repeated,
)
