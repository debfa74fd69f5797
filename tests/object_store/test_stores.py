"""The servers of the tests do what the tests need of an object store."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest
from botocore.exceptions import ClientError

from tests.support.stores import ObjectStore


def test_a_file_written_with_pyarrow_is_read_again(each_store: ObjectStore) -> None:
    bucket, filesystem = each_store.new_bucket(), each_store.filesystem()
    with filesystem.open_output_stream(f"{bucket}/k=%2F/part") as stream:
        stream.write(b"rows")
    assert each_store.keys(bucket) == ["k=%2F/part"]
    with filesystem.open_input_file(f"{bucket}/k=%2F/part") as file:
        assert file.read() == b"rows"


def test_a_conditional_put_never_replaces(each_store: ObjectStore) -> None:
    bucket, client = each_store.new_bucket(), each_store.client()
    client.put_object(Bucket=bucket, Key="one", Body=b"first", IfNoneMatch="*")
    with pytest.raises(ClientError) as refused:
        client.put_object(Bucket=bucket, Key="one", Body=b"second", IfNoneMatch="*")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
    assert client.get_object(Bucket=bucket, Key="one")["Body"].read() == b"first"


def _won(store: ObjectStore, bucket: str, writer: int) -> list[int]:
    client, won = store.client(), []
    for number in range(25):
        try:
            client.put_object(
                Bucket=bucket, Key=str(number), Body=str(writer).encode(), IfNoneMatch="*"
            )
        except ClientError:
            continue
        won.append(number)
    return won


def test_of_racing_processes_one_wins_each_name(gateway: ObjectStore) -> None:
    bucket = gateway.new_bucket()
    writers = [0, 1, 2, 3]
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        won = list(pool.map(_won, [gateway] * 4, [bucket] * 4, writers))
    assert sorted(number for each in won for number in each) == list(range(25))
    for writer, numbers in zip(writers, won, strict=True):
        for number in numbers:
            body = gateway.client().get_object(Bucket=bucket, Key=str(number))["Body"].read()
            assert body == str(writer).encode()
