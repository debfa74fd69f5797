"""A secret that was put where it would be seen is refused, and the error does not repeat it."""

from __future__ import annotations

import pytest

from airflow_provider_merge.operators._shared.source_parameters import to_sources
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import file_source
from airflow_provider_merge.secret_names import refuse_secrets
from spark_jobs.errors import ErrorCode, RequestError
from tests.airflow.support import PASSWORD


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net",
        "spark.authenticate.secret",
        "spark.ssl.keyPassword",
        "password",
        "fs.s3.accessKeySecret",
        "dlf.access-key-id",
        "dlf.private-key",
    ],
)
def test_names_of_secrets(name):
    with pytest.raises(RequestError) as raised:
        refuse_secrets("conf", {name: PASSWORD}, "")

    assert raised.value.code is ErrorCode.REQUEST_INVALID
    assert name in raised.value.message
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        "spark.kubernetes.driver.secretKeyRef.AWS_SECRET",
        "spark.kubernetes.driver.secrets.keys",
        "spark.hadoop.fs.s3a.aws.credentials.provider",
        "spark.security.credentials.hive.enabled",
        "spark.kerberos.keytab",
        "spark.sql.shuffle.partitions",
        "header",
    ],
)
def test_names_that_only_speak_of_secrets(name):
    refuse_secrets("conf", {name: "a value"}, "")


@pytest.mark.parametrize(
    "value", [f"jdbc:postgresql://u:{PASSWORD}@host/db", f"jdbc:mysql://h/db?password={PASSWORD}"]
)
def test_addresses_with_a_secret(value):
    with pytest.raises(RequestError) as raised:
        refuse_secrets("source.options", {"url": value}, "")

    assert PASSWORD not in str(raised.value)


def test_options_of_a_source():
    source = file_source("/in", "csv", options={"header": True, "password": PASSWORD})

    with pytest.raises(RequestError, match=r"source\.options\.password: holds a secret") as raised:
        to_sources(source)

    assert PASSWORD not in str(raised.value)


def test_conf_of_an_operator():
    with pytest.raises(RequestError, match=r"conf\.spark\.authenticate\.secret") as raised:
        MergeIntoOperator(
            task_id="merge",
            target="shop.orders",
            source="shop.changes",
            on="t.id = s.id",
            when=[when_matched().delete()],
            conf={"spark.authenticate.secret": PASSWORD},
        )

    assert PASSWORD not in str(raised.value)
