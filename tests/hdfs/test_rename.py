"""A snapshot in HDFS is created once, whatever becomes of requests and answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.storage.rename import RenameFiles
from tests.hdfs.proxy import Fault, Proxy, proxy_before
from tests.judge.hdfs_server import Hdfs

_WRITERS = 8
_ROUNDS = 20
_ALWAYS = 100


@pytest.fixture
def folder(hdfs: Hdfs) -> str:
    """An empty folder, as a path that begins with the authority."""
    return hdfs.new_warehouse().removeprefix("hdfs://")


@pytest.fixture
def proxy(hdfs: Hdfs) -> Iterator[Proxy]:
    with proxy_before(hdfs.authority) as running:
        yield running


def store(authority: str) -> RenameFiles:
    quick = {"dfs.client.failover.sleep.base.millis": "10"}
    return RenameFiles(HdfsOptions.of(f"hdfs://{authority}/", quick))


def through(proxy: Proxy, folder: str) -> tuple[RenameFiles, str]:
    """A store whose requests go through the proxy, and the path of a snapshot for it."""
    _, _, inside = folder.partition("/")
    return store(proxy.authority), f"{proxy.authority}/{inside}/snapshot-1"


def files(hdfs: Hdfs, folder: str) -> dict[str, bytes]:
    client, inside = hdfs.client(), folder.removeprefix(hdfs.authority)
    found = [status.path for status in client.list_status(inside)]
    return {path.rpartition("/")[2]: bytes(client.read(path).read()) for path in found}


def test_a_snapshot_is_created_once(hdfs: Hdfs, folder: str) -> None:
    publishing = store(hdfs.authority)

    assert publishing.create(f"{folder}/snapshot-1", "first")
    assert not publishing.create(f"{folder}/snapshot-1", "second")

    assert files(hdfs, folder) == {"snapshot-1": b"first"}


def test_of_writers_at_the_same_time_one_wins(hdfs: Hdfs, folder: str) -> None:
    barrier = threading.Barrier(_WRITERS)
    stores = [store(hdfs.authority) for _ in range(_WRITERS)]

    def write(number: int, round_: int) -> bool:
        barrier.wait()
        return stores[number].create(f"{folder}/snapshot-{round_}", f"of {number}")

    with ThreadPoolExecutor(_WRITERS) as pool:
        for round_ in range(_ROUNDS):
            won = list(pool.map(write, range(_WRITERS), [round_] * _WRITERS))

            assert won.count(True) == 1
            content = files(hdfs, folder)
            assert content[f"snapshot-{round_}"] == f"of {won.index(True)}".encode()
            assert len(content) == round_ + 1


def test_the_hint_is_replaced_and_its_failure_ignored(hdfs: Hdfs, folder: str) -> None:
    publishing = store(hdfs.authority)

    publishing.write_hint(f"{folder}/LATEST", "1")
    publishing.write_hint(f"{folder}/LATEST", "12")
    publishing.write_hint(f"{folder}/LATEST/no-folder/LATEST", "13")

    assert files(hdfs, folder) == {"LATEST": b"12"}


@pytest.mark.parametrize("times", [1, _ALWAYS])
def test_without_an_answer_the_file_tells_what_became_of_it(
    hdfs: Hdfs, folder: str, proxy: Proxy, times: int
) -> None:
    proxy.add("rename2", "lose the answer", times)
    publishing, path = through(proxy, folder)

    assert publishing.create(path, "ours")

    assert len(proxy.faults["rename2"]) < times
    assert files(hdfs, folder) == {"snapshot-1": b"ours"}


def test_a_rename_that_never_arrived_did_nothing(hdfs: Hdfs, folder: str, proxy: Proxy) -> None:
    proxy.add("rename2", "lose the request")
    publishing, path = through(proxy, folder)

    with pytest.raises(OSError, match="could not be published") as raised:
        publishing.create(path, "ours")

    assert not isinstance(raised.value, TimeoutError | ConnectionError)
    assert files(hdfs, folder) == {}
    assert publishing.create(path, "ours")


@pytest.mark.parametrize("fault", ["lose the request", "lose the answer"])
def test_another_writer_was_faster_while_the_answer_was_lost(
    hdfs: Hdfs, folder: str, proxy: Proxy, fault: Fault
) -> None:
    assert store(hdfs.authority).create(f"{folder}/snapshot-1", "theirs")
    proxy.add("rename2", fault, _ALWAYS)
    publishing, path = through(proxy, folder)

    assert not publishing.create(path, "ours")

    assert files(hdfs, folder) == {"snapshot-1": b"theirs"}


def test_a_file_whose_end_is_not_known_may_be_ours(hdfs: Hdfs, folder: str) -> None:
    theirs = hdfs.client().create(f"/{folder.partition('/')[2]}/snapshot-1")
    theirs.write(b"theirs")
    publishing = store(hdfs.authority)

    with pytest.raises(TimeoutError, match="snapshot-1"):
        publishing.create(f"{folder}/snapshot-1", "ours")

    theirs.close()
    assert not publishing.create(f"{folder}/snapshot-1", "ours")
    assert files(hdfs, folder) == {"snapshot-1": b"theirs"}


def test_silence_is_no_answer(hdfs: Hdfs, folder: str, proxy: Proxy) -> None:
    proxy.add("rename2", "be silent from then on")
    publishing, path = through(proxy, folder)

    with pytest.raises(TimeoutError, match="snapshot-1"):
        publishing.create(path, "ours")

    proxy.is_silent = False
    assert publishing.create(path, "ours")
    assert files(hdfs, folder)["snapshot-1"] == b"ours"


def test_a_file_that_can_not_be_written_is_certain(hdfs: Hdfs, folder: str, proxy: Proxy) -> None:
    proxy.add("create", "be silent from then on")
    publishing, path = through(proxy, folder)

    with pytest.raises(OSError, match="could not be written") as raised:
        publishing.create(path, "ours")

    assert not isinstance(raised.value, TimeoutError | ConnectionError)
    assert files(hdfs, folder) == {}
