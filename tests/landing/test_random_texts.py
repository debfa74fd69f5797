"""Random texts are what Python's own types say, by columns and one by one."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from spark_jobs.landing.values import TextRules, parsed
from tests.landing.casts import cast
from tests.landing.reading import REFUSED, kind_of, value
from tests.landing.texts import TYPES, any_text

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")


@pytest.mark.parametrize("type_name", TYPES)
def test_single_texts(type_name: str) -> None:
    chance = random.Random(type_name)
    for _ in range(1000):
        text, zone = any_text(chance, type_name), chance.choice(ZONES)

        found, expected = value(text, type_name, TextRules(zone)), cast(text, type_name, zone)

        assert repr(found) == repr(_as_found(expected)), (text, zone)


@pytest.mark.parametrize("type_name", TYPES)
def test_columns(type_name: str) -> None:
    chance = random.Random(f"column of {type_name}")
    for share in (0.0, 0.01, 0.5):
        zone = chance.choice(ZONES)
        texts = [any_text(chance, type_name) for _ in range(500)]
        good = [text for text in texts if cast(text, type_name, zone) != REFUSED]
        texts = [text if chance.random() < share else chance.choice(good) for text in texts]

        found = parsed(pa.array(texts), kind_of(type_name), TextRules(zone))

        expected = [_as_found(cast(text, type_name, zone)) for text in texts]
        bad = [False] * len(texts) if found.bad is None else found.bad.tolist()
        assert bad == [each == REFUSED for each in expected]
        kept = [None if each == REFUSED else each for each in expected]
        assert repr(found.values.to_pylist()) == repr(kept)


def _as_found(expected: object) -> object:
    """Instants as Arrow gives them back, with the zone of its type."""
    scalar = pa.scalar(expected)
    return scalar.as_py() if pa.types.is_timestamp(scalar.type) else expected
