"""Texts as BOOLEAN, spelled as Spark's CAST takes them."""

from __future__ import annotations

import pytest

from tests.landing.reading import REFUSED, value


@pytest.mark.parametrize("text", ["t", "true", "y", "yes", "1", "TRUE", "Yes", " true "])
def test_true(text: str) -> None:
    assert value(text, "BOOLEAN") is True


@pytest.mark.parametrize("text", ["f", "false", "n", "no", "0", "FALSE", "No", "\tfalse"])
def test_false(text: str) -> None:
    assert value(text, "BOOLEAN") is False


@pytest.mark.parametrize(
    "text", ["", "on", "off", "2", "-1", "01", "truee", "tr ue", "NULL", "ye\u017f"]
)
def test_any_other_text_is_refused(text: str) -> None:
    assert value(text, "BOOLEAN") == REFUSED
