"""Blocks of a stream, whose consumer waits for whole records."""

from __future__ import annotations

import io

import pytest

from spark_jobs.landing import blocks
from spark_jobs.landing.blocks import Blocks, RecordTooLongError


def test_what_is_not_taken_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4)
    found = Blocks(io.BytesIO(b"abcdef"), 100)

    assert found.read_on()
    found.take(3)
    assert found.read_on()
    assert (found.data, found.position, found.is_end) == (b"def", 3, False)
    assert found.read_on()
    assert (found.data, found.is_end) == (b"def", True)
    assert not found.read_on()


def test_a_record_may_be_as_long_as_allowed_before_half_a_line_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5)
    found = Blocks(io.BytesIO(b"abcd\r\n"), 4)
    found.read_on()
    found.take(0)

    assert found.read_on()
    assert found.data == b"abcd\r\n"


def test_more_data_than_a_record_may_have_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 6)
    found = Blocks(io.BytesIO(b"abcdefghij"), 4)
    found.read_on()
    found.take(0)

    with pytest.raises(RecordTooLongError):
        found.read_on()


def test_data_that_is_taken_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 6)
    found = Blocks(io.BytesIO(b"abcdefghij"), 4)
    found.read_on()
    found.take(1)

    assert found.read_on()
