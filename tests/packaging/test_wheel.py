"""The wheel holds both packages, completely, and nothing else."""

from __future__ import annotations

import re
import zipfile
from email.parser import HeaderParser

from tests.packaging.conftest import ROOT, build_wheel

PACKAGES = ("airflow_provider_merge", "spark_jobs")


def test_contents(wheel):
    sources = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert held == sources


def test_metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (folder,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = HeaderParser().parsestr(archive.read(f"{folder}/METADATA").decode())
        entry_points = archive.read(f"{folder}/entry_points.txt").decode()
        assert f"{folder}/licenses/LICENSE" in archive.namelist()
    assert "[apache_airflow_provider]" in entry_points
    lines = metadata.get_all("Requires-Dist")
    needed = {re.split(r"[<>=]", line)[0] for line in lines if "extra ==" not in line}
    assert needed == {
        "apache-airflow",
        "apache-airflow-providers-apache-spark",
        "backports-zstd",
        "fastavro",
        "fsspec",
        "psutil",
        "requests",
        "sqlglot",
    }, "neither Spark nor a table library comes into Airflow's environment"
    extras = {re.split(r"[<>=!]", line)[0] for line in lines if "extra ==" in line}
    assert extras == {
        "s3fs",
        "hdfs-native",
        "apache-airflow-providers-openlineage",
        "apache-airflow-providers-apache-iceberg",
        "pyiceberg",
        "boto3",
        "plotly",
        "pyarrow",
    }
    provided = ["glue", "hdfs", "iceberg", "openlineage", "s3", "ui"]
    assert sorted(metadata.get_all("Provides-Extra")) == provided


def test_same_sources_give_the_same_bytes(wheel, tmp_path):
    assert build_wheel(tmp_path).read_bytes() == wheel.read_bytes()
