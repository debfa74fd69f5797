"""Which files texts and sources may read, where Airflow's configuration says it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.text_limits import TextLimits
from spark_jobs.run import run
from tests.attacks.asked import asked


@pytest.fixture
def lake(tmp_path: Path) -> CatalogSpec:
    (tmp_path / "lake").mkdir()
    return CatalogSpec("paimon", str(tmp_path / "lake"))


def require_refused(result: JobResult) -> None:
    assert result.error is not None
    assert result.error.code == "NOT_SUPPORTED", result.error
    assert "[merge] source_prefixes" in result.error.remedy


@pytest.fixture
def landing(tmp_path: Path) -> TextLimits:
    for name in ("land", "landing"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"id": [1]}), tmp_path / name / "a.parquet")
    return TextLimits(source_prefixes=(f"{tmp_path}/land",))


@pytest.mark.parametrize(
    "text",
    [
        "parquet.`{0}/landing/a.parquet`",
        "parquet.`{0}/land/../landing/a.parquet`",
        "parquet.`file:{0}/land*/a.parquet`",
        "parquet.`{0}/land{{,ing}}/a.parquet`",
        "parquet.`{0}/land/a.parquet` WITH ('path' = '{0}/landing/a.parquet')",
        "text.`/etc/hostname`",
        "(SELECT * FROM parquet.`{0}/landing/a.parquet`)",
    ],
)
def test_texts(
    spark: SparkSession, lake: CatalogSpec, tmp_path: Path, landing: TextLimits, text: str
) -> None:
    request = asked(lake, f"SELECT * FROM {text.format(tmp_path)}", landing)

    require_refused(run(request, spark))


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("{0}/landing", {}),
        ("{0}/land/../landing", {}),
        ("{0}/land", {"paths": '["{0}/landing"]'}),
        ("{0}/land", {"PATH": "{0}/landing"}),
        ("{0}/land", {"avroSchemaUrl": "{0}/landing/a.parquet"}),
    ],
)
def test_sources(
    spark: SparkSession,
    lake: CatalogSpec,
    tmp_path: Path,
    landing: TextLimits,
    path: str,
    options: dict[str, str],
) -> None:
    named = {name: each.format(tmp_path) for name, each in options.items()}
    source = FileSource("q", path.format(tmp_path), "parquet", named)
    request = JobRequest("query", None, lake, QuerySpec("q"), (source,), text_limits=landing)

    require_refused(run(request, spark))


def test_what_may_be_read(
    spark: SparkSession, lake: CatalogSpec, tmp_path: Path, landing: TextLimits
) -> None:
    files = FileSource("f", f"file://{tmp_path}/land/*.parquet", "parquet")
    text = f"SELECT id FROM f UNION ALL SELECT id FROM parquet.`{tmp_path}/land`"
    sources = (files, SqlSource("q", text))
    request = JobRequest("query", None, lake, QuerySpec("q"), sources, text_limits=landing)

    result = run(request, spark)

    assert result.error is None
    assert result.query is not None
    assert result.query.rows == ((1,), (1,))
