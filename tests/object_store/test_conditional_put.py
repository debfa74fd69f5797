"""A snapshot on an object store is created once, whatever becomes of requests and answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from spark_jobs.contract.s3_options import S3Options
from spark_jobs.errors import ErrorCode, InternalError, NotSupportedError
from spark_jobs.storage.conditional_put import ConditionalPutFiles, require_conditional_put
from spark_jobs.storage.s3 import s3_client
from tests.support.proxy import Fault, Proxy, proxy_before
from tests.support.stores import ObjectStore


@pytest.fixture
def bucket(store: ObjectStore) -> str:
    return store.new_bucket()


@pytest.fixture
def proxy(store: ObjectStore) -> Iterator[Proxy]:
    with proxy_before(store.endpoint) as running:
        yield running


def through(proxy: Proxy, store: ObjectStore) -> ConditionalPutFiles:
    options = {"fs.s3.endpoint": proxy.endpoint, "fs.s3.region": "us-east-1", **store.credentials}
    return ConditionalPutFiles(s3_client(S3Options.of(options)))


def content(store: ObjectStore, bucket: str) -> bytes:
    body: bytes = store.client().get_object(Bucket=bucket, Key="t/snapshot-1")["Body"].read()
    return body


def test_a_snapshot_is_created_once(store: ObjectStore, bucket: str) -> None:
    publishing = ConditionalPutFiles(store.client())

    assert publishing.create(f"{bucket}/t/snapshot-1", "first")
    assert not publishing.create(f"{bucket}/t/snapshot-1", "second")

    assert content(store, bucket) == b"first"
    assert store.keys(bucket) == ["t/snapshot-1"]


def test_the_hint_is_replaced_and_its_failure_ignored(store: ObjectStore, bucket: str) -> None:
    publishing = ConditionalPutFiles(store.client())

    publishing.write_hint(f"{bucket}/t/LATEST", "1")
    publishing.write_hint(f"{bucket}/t/LATEST", "12")
    publishing.write_hint("no-such-bucket/t/LATEST", "13")

    assert store.client().get_object(Bucket=bucket, Key="t/LATEST")["Body"].read() == b"12"


@pytest.mark.parametrize("fault", ["lose the request", "lose the answer", "503"])
def test_without_an_answer_the_same_put_tells_what_became_of_it(
    store: ObjectStore, bucket: str, proxy: Proxy, fault: Fault
) -> None:
    proxy.add("PUT", "snapshot-1", fault)
    publishing = through(proxy, store)

    with pytest.raises(TimeoutError, match="snapshot-1"):
        publishing.create(f"{bucket}/t/snapshot-1", "ours")

    assert publishing.create(f"{bucket}/t/snapshot-1", "ours")
    assert content(store, bucket) == b"ours"


@pytest.mark.parametrize("fault", ["lose the request", "503"])
def test_another_writer_was_faster_while_the_answer_was_lost(
    store: ObjectStore, bucket: str, proxy: Proxy, fault: Fault
) -> None:
    store.client().put_object(Bucket=bucket, Key="t/snapshot-1", Body=b"theirs")
    proxy.add("PUT", "snapshot-1", fault)
    publishing = through(proxy, store)

    with pytest.raises(TimeoutError, match="snapshot-1"):
        publishing.create(f"{bucket}/t/snapshot-1", "ours")

    assert not publishing.create(f"{bucket}/t/snapshot-1", "ours")
    assert content(store, bucket) == b"theirs"


def test_a_put_that_meets_another_on_its_way_did_nothing(
    store: ObjectStore, bucket: str, proxy: Proxy
) -> None:
    proxy.add("PUT", "snapshot-1", "409")

    with pytest.raises(OSError, match="409") as raised:
        through(proxy, store).create(f"{bucket}/t/snapshot-1", "ours")

    assert not isinstance(raised.value, TimeoutError)
    assert store.keys(bucket) == []


def test_a_refusal_is_certain(store: ObjectStore) -> None:
    with pytest.raises(OSError, match="NoSuchBucket") as raised:
        ConditionalPutFiles(store.client()).create("no-such-bucket/t/snapshot-1", "ours")

    assert not isinstance(raised.value, TimeoutError)


def test_a_store_that_can_not_be_reached_did_nothing(bucket: str, store: ObjectStore) -> None:
    access = S3Options.of({**store.credentials, "fs.s3.endpoint": "http://127.0.0.1:9"})

    with pytest.raises(OSError, match="EndpointConnectionError") as raised:
        ConditionalPutFiles(s3_client(access)).create(f"{bucket}/t/snapshot-1", "ours")

    assert not isinstance(raised.value, TimeoutError)


def test_conditional_put_is_found_out_with_one_object_that_stays(
    store: ObjectStore, bucket: str
) -> None:
    for _ in range(2):
        require_conditional_put(store.client(), f"{bucket}/a/warehouse")
        assert store.keys(bucket) == ["a/warehouse/_operations/conditional-put"]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("ignore conditions", "replaced an object"), ("501", "does not know conditional writes")],
)
def test_a_store_without_conditional_put_is_refused(
    moto: ObjectStore, fault: Fault, reason: str
) -> None:
    bucket = moto.new_bucket()
    with proxy_before(moto.endpoint) as proxy:
        proxy.add("PUT", "conditional-put", fault, times=10)
        client = replace(moto, endpoint=proxy.endpoint).client()

        with pytest.raises(NotSupportedError, match=reason):
            require_conditional_put(client, bucket)


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_first_jobs_that_meet_at_the_probe_wait_for_each_other(
    store: ObjectStore, bucket: str, proxy: Proxy, times: int, is_there: bool
) -> None:
    key = "_operations/conditional-put"
    if is_there:
        store.client().put_object(Bucket=bucket, Key=key, Body=b"")
    proxy.add("PUT", "conditional-put", "409", times)

    require_conditional_put(replace(store, endpoint=proxy.endpoint).client(), bucket)

    assert store.keys(bucket) == [key]


def test_a_probe_that_always_meets_another_may_succeed_later(
    store: ObjectStore, bucket: str, proxy: Proxy
) -> None:
    proxy.add("PUT", "conditional-put", "409", times=100)

    with pytest.raises(InternalError, match="409") as raised:
        require_conditional_put(replace(store, endpoint=proxy.endpoint).client(), bucket)

    assert (raised.value.code, raised.value.retryable) == (ErrorCode.STORAGE_UNAVAILABLE, True)
