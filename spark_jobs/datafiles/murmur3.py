"""MurmurHash3 (x86, 32 bits) of many values at once, in numpy. Runs on executors.

After Austin Appleby's reference implementation. A hash begins with its seed, takes one word of four
bytes after another, and is finished with the number of bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]
Lengths = npt.NDArray[np.int64]

_C1: Final = np.uint32(0xCC9E2D51)
_C2: Final = np.uint32(0x1B873593)
FACTOR: Final = 5
ADDEND: Final = 0xE6546B64
_MIX1: Final = np.uint32(0x85EBCA6B)
_MIX2: Final = np.uint32(0xC2B2AE35)


def of_longs(values: npt.NDArray[np.int64]) -> Hashes:
    """The hashes, with the seed 0, of numbers of 8 bytes, little-endian."""
    words = np.ascontiguousarray(values, dtype="<i8").view("<u4").reshape(-1, 2)
    hashes = np.zeros(len(values), np.uint32)
    for position in range(2):
        hashes = mixed(hashes, scrambled(words[:, position]))
    return finished(hashes, np.full(len(values), 8))


def of_bytes(data: Bytes, starts: Lengths, lengths: Lengths) -> Hashes:
    """The hashes, with the seed 0, of ``lengths`` bytes of ``data`` from ``starts`` on."""
    hashes = np.zeros(len(starts), np.uint32)
    # The longest first, so that those with another block are always the first ones.
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    padded = np.concatenate([data, np.zeros(4, np.uint8)])
    for block in range(int(lengths[0] // 4) if len(lengths) else 0):
        count = int(np.searchsorted(-lengths, -4 * (block + 1), side="right"))
        word = _words(padded, starts[:count] + 4 * block)
        hashes[:count] = mixed(hashes[:count], scrambled(word))
    rest = lengths % 4
    tails = _words(padded, starts + lengths - rest)
    kept = (np.uint64(1) << (rest.astype(np.uint64) * np.uint64(8))) - np.uint64(1)
    hashes ^= np.where(rest > 0, scrambled(tails & kept.astype(np.uint32)), np.uint32(0))
    unsorted = np.empty(len(order), np.uint32)
    unsorted[order] = finished(hashes, lengths)
    return unsorted


def _words(data: Bytes, places: Lengths) -> Hashes:
    word = np.zeros(len(places), np.uint32)
    for position in range(4):
        word |= data[places + position].astype(np.uint32) << np.uint32(8 * position)
    return word


def _rotated(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))


def scrambled(word: Hashes) -> Hashes:
    """Words as ``mixed`` takes them."""
    return _rotated(word * _C1, 15) * _C2


def mixed(hashes: Hashes, scrambled_words: Hashes) -> Hashes:
    """Each hash after one more word, which is ``scrambled``."""
    return _rotated(hashes ^ scrambled_words, 13) * np.uint32(FACTOR) + np.uint32(ADDEND)


def finished(hashes: Hashes, lengths: Lengths) -> Hashes:
    """The hashes of all words of texts of ``lengths`` bytes."""
    hashes = hashes ^ lengths.astype(np.uint32)
    hashes = (hashes ^ (hashes >> np.uint32(16))) * _MIX1
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _MIX2
    return hashes ^ (hashes >> np.uint32(16))
