"""Deletion vectors as bytes, against pypaimon's own and against Roaring's (pyroaring)."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypaimon.deletionvectors.bitmap_deletion_vector import BitmapDeletionVector
from pypaimon.utils.roaring_bitmap import RoaringBitmap
from pyroaring import BitMap

from spark_jobs.connectors.paimon.format.vectors import decode, encode
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError

SOURCE = "index-1 of data-1.parquet"
MAGIC = 1581511376

# Every kind of container on both sides of where one kind gives way to another.
SHAPES = {
    "empty": range(0),
    "one": range(7, 8),
    "the last of 32 bits": range(2**32 - 1, 2**32),
    "4096 apart": range(0, 3 * 4096, 3),
    "4097 apart": range(0, 3 * 4097, 3),
    "4096 at the end of a container": range(2**16 - 4096, 2**16),
    "4097 over two containers": range(2**16 - 4096, 2**16 + 1),
    "a full container": range(2**16),
    "a full container and one": range(2**16 + 1),
    "sparse over many containers": range(5, 10**8, 1_000_003),
    "every other row of many containers": range(0, 10**6, 2),
    "all rows": range(10**6),
}


def vector(bitmap: bytes, magic: int = MAGIC) -> bytes:
    """A bitmap's bytes, framed as Paimon frames them."""
    body = magic.to_bytes(4, "big") + bitmap
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def written_by_pypaimon(positions: BitMap) -> bytes:
    return BitmapDeletionVector(RoaringBitmap.deserialize(positions.serialize())).serialize()


def read_by_pypaimon(data: bytes) -> list[int]:
    return list(BitmapDeletionVector.deserialize_from_bytes(data[8:-4]).bit_map())


def runs(*pairs: tuple[int, int], cardinality: int) -> bytes:
    """A bitmap of one container that holds runs of (start, length)."""
    head = struct.pack("<IBHH", 12347, 1, 0, cardinality - 1)
    body = b"".join(struct.pack("<HH", start, length - 1) for start, length in pairs)
    return head + struct.pack("<H", len(pairs)) + body


@pytest.mark.parametrize("name", SHAPES)
def test_both_ways_with_pypaimon(name: str) -> None:
    expected = np.array(SHAPES[name], np.int64)
    bitmap = BitMap(expected)
    plain = bitmap.serialize()
    bitmap.run_optimize()

    encoded = encode(expected)

    assert read_by_pypaimon(encoded) == expected.tolist()
    assert decode(written_by_pypaimon(bitmap), SOURCE).tolist() == expected.tolist()
    assert decode(vector(plain), SOURCE).tolist() == expected.tolist()
    assert decode(encoded, SOURCE).tolist() == expected.tolist()
    assert decode(encoded, SOURCE).dtype == np.int64


def test_a_vector_without_runs_is_byte_for_byte_what_pypaimon_writes() -> None:
    positions = BitMap([3, 70_000, 70_001, 2**31 - 1, *range(200_000, 260_000, 2)])

    assert encode(np.array(positions, np.int64)) == written_by_pypaimon(positions)


@pytest.mark.parametrize("containers", [1, 3, 4, 9])
def test_runs_with_and_without_offsets_beside_other_containers(containers: int) -> None:
    positions = BitMap()
    for container in range(containers):
        start = container * 2**16
        positions.add_range(start + 10, start + 2**16)
    positions |= BitMap(range(containers * 2**16, (containers + 1) * 2**16, 3))
    positions |= BitMap([2**30, 2**30 + 2])
    assert positions.run_optimize()

    assert decode(vector(positions.serialize()), SOURCE).tolist() == list(positions)


def test_a_cookie_of_runs_without_any_run_has_no_offsets() -> None:
    bitmap = struct.pack("<IBHHH", 12347, 0, 0, 0, 42)

    assert list(BitMap.deserialize(bitmap)) == [42]
    assert decode(vector(bitmap), SOURCE).tolist() == [42]


def test_runs_that_touch() -> None:
    bitmap = runs((0, 3), (3, 2), (65_535, 1), cardinality=6)

    assert decode(vector(bitmap), SOURCE).tolist() == [0, 1, 2, 3, 4, 65_535]


@st.composite
def deleted(draw: st.DrawFn) -> BitMap:
    """Ranges and single rows, some of them taken away again."""
    ranges = st.tuples(st.integers(0, 2**19), st.integers(1, 2**17), st.integers(1, 4))
    found = BitMap(draw(st.lists(st.integers(0, 2**32 - 1), max_size=40)))
    for start, length, step in draw(st.lists(ranges, max_size=4)):
        found |= BitMap(range(start, start + length, step))
    return found - BitMap(draw(st.lists(st.integers(0, 2**20), max_size=40)))


@settings(deadline=None)
@given(positions=deleted(), optimised=st.booleans())
def test_any_positions_both_ways(positions: BitMap, optimised: bool) -> None:
    if optimised:
        positions.run_optimize()
    data = written_by_pypaimon(positions)

    found = decode(data, SOURCE)

    assert found.tolist() == list(positions)
    assert read_by_pypaimon(encode(found)) == list(positions)
    assert decode(encode(found), SOURCE).tolist() == list(positions)


@settings(deadline=None)
@given(positions=deleted(), data=st.data())
def test_a_flipped_bit_or_a_missing_end_is_damage(positions: BitMap, data: st.DataObject) -> None:
    intact = encode(np.array(positions, np.int64))
    broken = bytearray(intact)
    broken[data.draw(st.integers(0, len(intact) - 1))] ^= 1 << data.draw(st.integers(0, 7))

    for damaged in (bytes(broken), intact[: data.draw(st.integers(0, len(intact) - 1))]):
        with pytest.raises(CatalogError) as caught:
            decode(damaged, SOURCE)
        assert caught.value.code is ErrorCode.METADATA_UNREADABLE
        assert SOURCE in caught.value.message


NO_RUNS = struct.pack("<I", 12346)
BROKEN = {
    "no bitmap": b"",
    "another cookie": struct.pack("<II", 12345, 0),
    "more containers than bytes": NO_RUNS + struct.pack("<I", 65_536),
    "more containers than there can be": NO_RUNS + struct.pack("<I", 2**32 - 1),
    "more containers of runs than bytes": struct.pack("<I", 65_535 << 16 | 12347),
    "no offsets": NO_RUNS + struct.pack("<IHH", 1, 0, 0),
    "fewer positions than said": NO_RUNS + struct.pack("<IHHIHH", 1, 0, 2, 16, 1, 2),
    "bytes after the end": NO_RUNS + struct.pack("<IHHIHH", 1, 0, 0, 16, 1, 2),
    "positions out of order": NO_RUNS + struct.pack("<IHHIHH", 1, 0, 1, 16, 2, 1),
    "a position twice": NO_RUNS + struct.pack("<IHHIHH", 1, 0, 1, 16, 2, 2),
    "containers out of order": NO_RUNS + struct.pack("<IHHHHIIHH", 2, 1, 0, 0, 0, 24, 26, 7, 7),
    "a container twice": NO_RUNS + struct.pack("<IHHHHIIHH", 2, 1, 0, 1, 0, 24, 26, 7, 8),
    "a bitmap of another cardinality": NO_RUNS
    + struct.pack("<IHHI", 1, 0, 4999, 16)
    + b"\xff" * 8192,
    "half a bitmap": NO_RUNS + struct.pack("<IHHI", 1, 0, 4999, 16) + b"\xff" * 4096,
    "runs out of order": runs((10, 2), (0, 2), cardinality=4),
    "runs that overlap": runs((0, 3), (2, 2), cardinality=5),
    "a run over the end": runs((65_535, 2), cardinality=2),
    "runs of another cardinality": runs((0, 3), cardinality=5),
    "more runs than bytes": struct.pack("<IBHHH", 12347, 1, 0, 0, 65_535),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_bitmap_is_refused_though_its_checksum_is_right(name: str) -> None:
    with pytest.raises(CatalogError, match=SOURCE) as caught:
        decode(vector(BROKEN[name]), SOURCE)

    assert caught.value.code is ErrorCode.METADATA_UNREADABLE


@pytest.mark.parametrize("cardinality", [0, 2, 65_536])
def test_a_vector_of_another_cardinality_than_the_manifests_is_refused(cardinality: int) -> None:
    with pytest.raises(CatalogError, match="3 positions instead of"):
        decode(encode(np.array([1, 2, 70_000], np.int64)), SOURCE, cardinality)


def test_two_vectors_are_not_one() -> None:
    one = encode(np.array([1], np.int64))

    with pytest.raises(CatalogError, match="bytes"):
        decode(one + one, SOURCE)


def test_64_bit_vectors_are_refused_by_name() -> None:
    magic = int.from_bytes(struct.pack("<I", 1681511377), "big")

    with pytest.raises(NotSupportedError, match=r"deletion-vectors\.bitmap64"):
        decode(vector(bytes(16), magic), SOURCE)
