"""Texts as DECIMAL: exactly, or not at all."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.landing.reading import REFUSED, value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("1", "1.00"), ("-1.5", "-1.50"), ("+1.5", "1.50"), (".5", "0.50"), ("5.", "5.00")),
        *((" 1 ", "1.00"), ("9999.99", "9999.99"), ("-9999.99", "-9999.99"), ("0001.50", "1.50")),
        *(("1e3", "1000.00"), ("1E-2", "0.01"), ("12345e-2", "123.45"), ("-0", "0.00")),
        *(("1.5000000000", "1.50"), ("0" * 60 + "1", "1.00"), ("1." + "0" * 60, "1.00")),
        *(("0e99", "0.00"), ("0e-99", "0.00"), ("0.0e999999999999999999999", "0.00")),
        *(("0.0000001e7", "1.00"), ("10000000e-7", "1.00")),
    ],
)
def test_numbers_with_room_are_kept_exactly(text: str, number: str) -> None:
    assert str(value(text, "DECIMAL(6,2)")) == str(Decimal(number))


@pytest.mark.parametrize(
    "text",
    [
        *("12345.67", "10000", "-10000", "1e4", "1.005", "0.001", "1e-3", "9999.995", "9" * 60),
        *(
            "1e40",
            "1e999999999",
            "1e-999999999",
            "1e99999999999999999999",
            "1e-99999999999999999999",
        ),
    ],
)
def test_a_number_without_room_is_never_rounded(text: str) -> None:
    assert value(text, "DECIMAL(6,2)") == REFUSED


def test_the_widest_type_is_filled() -> None:
    nines = "9" * 38

    assert value(nines, "DECIMAL(38,0)") == Decimal(nines)
    assert value(f"-{nines}", "DECIMAL(38,0)") == Decimal(f"-{nines}")
    assert value(f"0.{nines}", "DECIMAL(38,38)") == Decimal(f"0.{nines}")
    assert value(f"{nines}9", "DECIMAL(38,0)") == REFUSED
    assert value(f"1{'0' * 38}", "DECIMAL(38,0)") == REFUSED


def test_a_number_that_overflows_128_bits_is_refused() -> None:
    assert value("3.87", "DECIMAL(38,38)") == REFUSED
    assert value("3402823669209384634633746074317682114.57", "DECIMAL(5,2)") == REFUSED


def test_a_number_of_a_million_digits_is_looked_at_at_once() -> None:
    assert value("9" * 1_000_000, "DECIMAL(38,0)") == REFUSED
    assert value("1." + "0" * 1_000_000, "DECIMAL(38,0)") == 1


@pytest.mark.parametrize(
    "text",
    ["", ".", "-", "+", "e3", "1e", "1,5", "1_0", "0x1", "NaN", "Infinity", "1 2", "--1", "1\0"],
)
def test_any_other_text_is_refused(text: str) -> None:
    assert value(text, "DECIMAL(6,2)") == REFUSED
