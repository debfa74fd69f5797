"""Cherry-picks decide as Iceberg's own procedure does on a table with the same history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_jobs.contract.maintenance import CherryPickSpec
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.run import run
from tests.connectors.iceberg.tables import catalog_of
from tests.judge.iceberg_spark import CATALOG, IcebergSpark, IcebergSparkError

# What Spark writes besides: its application, engine and versions.
_COMPARED = (
    "added-data-files",
    "deleted-data-files",
    "added-records",
    "deleted-records",
    "changed-partition-count",
    "total-data-files",
    "total-records",
    "wap.id",
    "published-wap-id",
)
_OURS, _JAVAS = "db.picked_here", "db.picked_by_java"
# What is staged under each wap.id, what comes after it, and whether it can be published then.
# Spark stages no DELETE that needs no rows to be read.
_CASES = {
    "on the head": ("INSERT INTO {t} VALUES (10, 1)", None, True),
    "behind": ("INSERT INTO {t} VALUES (11, 1)", "INSERT INTO {t} VALUES (12, 2)", True),
    "partition": ("INSERT OVERWRITE {t} VALUES (13, 1)", "INSERT INTO {t} VALUES (14, 2)", True),
    "changed": ("INSERT OVERWRITE {t} VALUES (15, 1)", "INSERT INTO {t} VALUES (16, 1)", False),
    "lost": ("INSERT OVERWRITE {t} VALUES (17, 2)", "DELETE FROM {t} WHERE p = 2", False),
    "rows": ("DELETE FROM {t} WHERE id % 100 = 12", "INSERT INTO {t} VALUES (18, 3)", False),
    "rows on the head": ("DELETE FROM {t} WHERE id % 100 = 13", None, True),
}


@pytest.fixture
def judge(iceberg_spark: IcebergSpark) -> Iterator[IcebergSpark]:
    """Spark, with a table for each of the two."""
    for name in (_OURS, _JAVAS):
        iceberg_spark.sql(
            f"CREATE TABLE {CATALOG}.{name} (id BIGINT, p INT) USING iceberg PARTITIONED BY (p) "
            "TBLPROPERTIES ('write.wap.enabled' = 'true', 'write.delete.mode' = 'copy-on-write')",
            f"INSERT INTO {CATALOG}.{name} VALUES (1, 1), (2, 2)",
        )
    iceberg_spark.sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    yield iceberg_spark
    iceberg_spark.sql("RESET spark.sql.sources.partitionOverwriteMode", "RESET spark.wap.id")


def rows(judge: IcebergSpark, name: str) -> list[tuple[int, int]]:
    found = judge.sql(f"SELECT id, p FROM {CATALOG}.{name} ORDER BY id")
    return [(row["id"], row["p"]) for row in found]


def history(judge: IcebergSpark, name: str) -> list[tuple[str, dict[str, Any], bool]]:
    """Of each snapshot the operation, its counts, and whether it names a source; oldest first."""
    found = judge.sql(
        f"SELECT operation, summary FROM {CATALOG}.{name}.snapshots ORDER BY committed_at"
    )
    summaries = [(row["operation"], dict(row["summary"])) for row in found]
    return [
        (operation, {key: summary.get(key) for key in _COMPARED}, "source-snapshot-id" in summary)
        for operation, summary in summaries
    ]


def picked_here(judge: IcebergSpark, operation_id: str, wap_id: str) -> str | None:
    """The code of the error; None: it is published."""
    spec = CherryPickSpec(wap_id=wap_id)
    request = JobRequest(operation_id, TableName.parse(_OURS), catalog_of(judge), spec)
    result = run(request, None)
    assert result.error is not None or result.status == "committed"
    return None if result.error is None else result.error.code


def picked_by_java(judge: IcebergSpark, wap_id: str) -> bool:
    try:
        judge.sql(f"CALL {CATALOG}.system.publish_changes('{_JAVAS}', '{wap_id}')")
    except IcebergSparkError:
        return False
    return True


def test_what_java_publishes_is_published_and_nothing_else(judge: IcebergSpark) -> None:
    for number, (wap_id, (staged, after, fits)) in enumerate(_CASES.items()):
        for name in (_OURS, _JAVAS):
            statements = [f"SET spark.wap.id = {wap_id}", staged, "RESET spark.wap.id"]
            statements += [after] if after else []
            judge.sql(*(each.format(t=f"{CATALOG}.{name}") for each in statements))

        code = picked_here(judge, f"pick-{number}", wap_id)

        assert (code is None) == picked_by_java(judge, wap_id) == fits, (wap_id, code)
        assert code in (None, "BRANCHES_DIVERGED"), wap_id
    assert rows(judge, _OURS) == rows(judge, _JAVAS)
    assert history(judge, _OURS) == history(judge, _JAVAS)
    for wap_id in ("on the head", "behind"):
        assert (
            picked_here(judge, f"again {wap_id}".replace(" ", "-"), wap_id) == "ALREADY_PUBLISHED"
        )
        assert not picked_by_java(judge, wap_id)
    judge.sql(f"INSERT INTO {CATALOG}.{_OURS} VALUES (20, 1)")
    assert (20, 1) in rows(judge, _OURS)
