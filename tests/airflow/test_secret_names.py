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
        "spark.hadoop.fs.azure.sas.fixed.token.store.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.box.store.blob.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.client.secret.store.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.user.password.store.dfs.core.windows.net",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
        "spark.hadoop.fs.gs.auth.access.token",
        "spark.hadoop.fs.gs.encryption.key",
        "spark.hadoop.fs.s3a.bucket.lake.secret.key",
        "spark.hadoop.fs.oss.accessKeySecret",
        "spark.hadoop.ssl.passphrase",
        "spark.executorEnv.DB_PASS",
        "jwt",
        "kafka.jwt",
        "sas",
        "azure_sas",
        "sharedKey",
        "signature",
        "requestSignature",
        "spark.yarn.appMasterEnv.MYSQL_PWD",
        "spark.kubernetes.driverEnv.AWS_SESSION_TOKEN",
        "spark.executorEnv.GOOGLE_CREDENTIALS",
        "spark.executorEnv.SHOP_APIKEY",
        "kafka.ssl.keystore.key",
        "header.Authorization",
        "basic.auth.user.info",
        "sfPasscode",
        "dbPass",
        "db.pass",
        "pwd",
    ],
)
def test_names_of_secrets(name: str) -> None:
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
        "spark.executorEnv.PWD",
        "spark.executorEnv.OLDPWD",
        "spark.hadoop.fs.azure.sas.token.provider.type",
        "spark.hadoop.fs.azure.account.oauth2.refresh.token.endpoint",
        "spark.hadoop.fs.azure.account.auth.type.store.dfs.core.windows.net",
        "spark.hadoop.fs.s3a.server-side-encryption.key",
        "spark.authenticate.secret.file",
        "spark.executorEnv.COMPASS",
        "bypass",
    ],
)
def test_names_that_only_speak_of_secrets(name: str) -> None:
    refuse_secrets("conf", {name: "a value"}, "")


@pytest.mark.parametrize(
    "value", [f"jdbc:postgresql://u:{PASSWORD}@host/db", f"jdbc:mysql://h/db?password={PASSWORD}"]
)
def test_addresses_with_a_secret(value: str) -> None:
    with pytest.raises(RequestError) as raised:
        refuse_secrets("source.options", {"url": value}, "")

    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        "spark.driver.extraJavaOptions",
        "spark.executor.extraJavaOptions",
        "spark.driver.defaultJavaOptions",
        "spark.yarn.am.extraJavaOptions",
        "spark.executorEnv.JAVA_TOOL_OPTIONS",
        "spark.yarn.appMasterEnv.SPARK_SUBMIT_OPTS",
    ],
)
@pytest.mark.parametrize(
    "value",
    [
        f"-Dfs.s3a.secret.key={PASSWORD}",
        f"-Xmx1g -Djavax.net.ssl.keyStorePassword={PASSWORD} -Dfile.encoding=UTF-8",
        f"-Xmx1g '-Dhttp.proxyPassword={PASSWORD}'",
        f"-Xmx1g\t-Dshop.apiKey={PASSWORD}",
        f"--password={PASSWORD}",
    ],
)
def test_options_of_java_with_a_secret(name: str, value: str) -> None:
    with pytest.raises(RequestError, match="holds a secret") as raised:
        refuse_secrets("conf", {name: value}, "")

    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize(
    "value",
    [
        "-Xmx1g -Dfile.encoding=UTF-8 -Djavax.net.ssl.keyStore=/etc/keys.p12",
        "-Dlog4j2.configurationFile=file:/etc/log4j2.properties",
        "-Dfs.s3a.secret.key= -Xmx1g",
        "/in/token=abc/day=1",
        "s3://bucket/password/file.csv",
    ],
)
def test_values_without_a_secret(value: str) -> None:
    refuse_secrets("conf", {"spark.driver.extraJavaOptions": value}, "")


def test_options_of_a_source() -> None:
    source = file_source("/in", "csv", options={"header": True, "password": PASSWORD})

    with pytest.raises(RequestError, match=r"source\.options\.password: holds a secret") as raised:
        to_sources(source)

    assert PASSWORD not in str(raised.value)


def test_conf_of_an_operator() -> None:
    with pytest.raises(RequestError, match=r"conf\.spark\.authenticate\.secret") as raised:
        MergeIntoOperator(
            task_id="merge",
            target="shop.orders",
            source="shop.changes",  # type: ignore[arg-type]
            on="t.id = s.id",
            when=[when_matched().delete()],
            conf={"spark.authenticate.secret": PASSWORD},
        )

    assert PASSWORD not in str(raised.value)
