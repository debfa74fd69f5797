"""Statistics travel as JSON and come back exactly."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.datafiles.values import decode_value, encode_value

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.decimals(allow_nan=False, allow_infinity=False),
)


@given(VALUES)
def test_a_value_survives_json(value: Any) -> None:
    found = decode_value(json.loads(json.dumps(encode_value(value), allow_nan=False)))

    assert type(found) is type(value)
    assert found == value or (math.isnan(value) and math.isnan(found))
    assert str(found) == str(value)


def test_an_instant_of_another_zone_comes_back_in_utc() -> None:
    berlin = dt.datetime(2024, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))

    assert decode_value(encode_value(berlin)).isoformat() == "2024-07-01T10:00:00+00:00"


def test_decimals_keep_their_scale() -> None:
    assert str(decode_value(encode_value(Decimal("1.500")))) == "1.500"


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="list"):
        encode_value([1])
