"""The one list of the rules in docs/architecture.md, "Parts and allowed imports"."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("airflow_provider_merge", "spark_jobs")
TABLE_LIBRARIES = ("pypaimon", "pyiceberg", "duckdb")

# Modules that executors import, because a class or function in them is pickled to executors. A new
# module of that kind gets one of these names or a line here (and in pyproject.toml, import-linter).
EXECUTOR_MODULES = (
    "spark_jobs.avro",
    "spark_jobs.formats.avro.*",
    "spark_jobs.datafiles.*",
    "spark_jobs.landing.*",
    "spark_jobs.connectors.shared.*",
    "spark_jobs.connectors.iceberg.compaction.part_compactor",
    "spark_jobs.connectors.iceberg.format.*",
    "spark_jobs.connectors.iceberg.maintenance.orphan_files",
    "spark_jobs.connectors.iceberg.read.arrow_scan",
    "spark_jobs.connectors.iceberg.write.file_layout",
    "spark_jobs.connectors.iceberg.write.sink",
    "spark_jobs.connectors.paimon.format.*",
    "spark_jobs.connectors.paimon.keyed.*",
    "spark_jobs.connectors.paimon.read.arrow_scan",
    "spark_jobs.connectors.paimon.read.keyed_scan",
    "spark_jobs.connectors.paimon.write.column_sink",
    "spark_jobs.connectors.paimon.write.file_layout",
    "spark_jobs.connectors.paimon.write.keyed_sink",
    "spark_jobs.connectors.paimon.write.sink",
    "spark_jobs.connectors.paimon.compaction.append_compactor",
    "spark_jobs.connectors.paimon.compaction.keyed_compactor",
    "spark_jobs.connectors.paimon.maintenance.orphan_files",
    "spark_jobs.engine.write.recorder",
    "spark_jobs.engine.source.arrow_reader",
    "spark_jobs.engine.source.change_labels",
    "spark_jobs.engine.write.cardinality",
    "spark_jobs.engine.write.derivation",
    "spark_jobs.engine.write.repacking",
    "spark_jobs.engine.source.file_columns",
    "spark_jobs.engine.compaction.part_tasks",
    "spark_jobs.engine.analysis.partition_values",
    "spark_jobs.engine.insert.insert_writer",
    "spark_jobs.engine.insert.replaced_rows",
    "spark_jobs.engine.write.task_batches",
    "spark_jobs.engine.insert.streamed_rows",
    "spark_jobs.engine.merge.located_tasks",
    "spark_jobs.engine.merge.copied_inserts",
    "spark_jobs.engine.merge.source_lookup",
    "spark_jobs.engine.insert.task_clusters",
    "spark_jobs.engine.source.landing_task",
    "spark_jobs.engine.query.output_writer",
    "spark_jobs.engine.runtime.lease",
    "spark_jobs.engine.runtime.nested_arrays",
    "spark_jobs.engine.runtime.spill",
    "spark_jobs.engine.write.change_writer",
    "spark_jobs.engine.write.text_check",
    "spark_jobs.engine.runtime.tasks",
    "spark_jobs.engine.write.change_counts",
    "spark_jobs.engine.write.task_batches",
    "spark_jobs.spi.arrow_tasks",
    "spark_jobs.storage.files",
)

# Packages that import nothing but the standard library when they are loaded.
STDLIB_ONLY = (
    "spark_jobs.contract",
    "spark_jobs.errors",
    "spark_jobs.formats",
    "spark_jobs.spi",
)

# For each part of the project, by longest prefix: which other parts, and which third-party
# packages, any line in it may import (inside functions too; TYPE_CHECKING blocks aside, except for
# the provider, where no line at all may).
_DOORS = ("spark_jobs.contract", "spark_jobs.errors")
_DOORS_AND_FORMATS = (*_DOORS, "spark_jobs.formats")
ALLOWED_IMPORTS = {
    "airflow_provider_merge": (
        "airflow_provider_merge",
        "airflow",
        "jinja2",
        "fsspec",
        "fastavro",
        "backports",
        "psutil",
        "requests",
        *_DOORS_AND_FORMATS,
    ),
    "airflow_provider_merge.checks": (
        "airflow_provider_merge",
        "jinja2",
        "sqlglot",
        *_DOORS_AND_FORMATS,
    ),
    "airflow_provider_merge.lineage": (
        "airflow_provider_merge",
        "airflow",
        "openlineage",
        "sqlglot",
        *_DOORS_AND_FORMATS,
    ),
    "airflow_provider_merge.operators._shared.spans": (
        "airflow_provider_merge",
        "opentelemetry",
        *_DOORS,
    ),
    "airflow_provider_merge.metadata": (
        "airflow_provider_merge.metadata",
        "airflow_provider_merge.storage",
        "airflow_provider_merge.exceptions",
        "fastavro",
        "backports",
        "requests",
        *_DOORS_AND_FORMATS,
    ),
    "airflow_provider_merge.metadata.iceberg": (
        "airflow_provider_merge.metadata",
        "airflow_provider_merge.storage",
        "airflow_provider_merge.exceptions",
        "pydantic",  # what pyiceberg is made of; inside functions
        "pyiceberg",
        "botocore",  # what its client of Glue is made of; inside functions
        "sqlalchemy",
        "requests",
        "urllib3",
        *_DOORS_AND_FORMATS,
    ),
    "airflow_provider_merge.ui.row_samples": (
        "airflow_provider_merge.ui.row_samples",
        "airflow_provider_merge.storage",
        "pyarrow",  # inside functions of a process of its own
        *_DOORS_AND_FORMATS,
    ),
    "airflow_provider_merge.storage": (
        "airflow_provider_merge.storage",
        "airflow_provider_merge.exceptions",
        "fsspec",
        *_DOORS_AND_FORMATS,
    ),
    "airflow_provider_merge.ui": (
        "airflow_provider_merge",
        "airflow",
        "fastapi",
        "pydantic",
        "sqlalchemy",
        *_DOORS_AND_FORMATS,
    ),
    "airflow_provider_merge.sql": ("airflow_provider_merge.sql", "sqlglot", *_DOORS_AND_FORMATS),
    "spark_jobs.contract": _DOORS,
    "spark_jobs.errors": (),
    "spark_jobs.formats": ("spark_jobs.formats", *_DOORS),
    "spark_jobs.formats.iceberg": (
        "spark_jobs.formats.iceberg",
        "spark_jobs.formats.whole_numbers",
        *_DOORS,
        "pyiceberg",  # inside functions, as the next ones
        "pydantic",
        "requests",
        "sqlalchemy",
    ),
    "spark_jobs.formats.avro": (
        "spark_jobs.formats.avro",
        *_DOORS,
        "fastavro",  # inside functions
    ),
    "spark_jobs.spi": ("spark_jobs.spi", *_DOORS),
    "spark_jobs.storage": (
        "spark_jobs.storage",
        "spark_jobs.spi",
        *_DOORS,
        "pyarrow",
        "botocore",
        "hdfs_native",
    ),
    "spark_jobs.datafiles": (
        "spark_jobs.datafiles",
        "spark_jobs.avro",
        "spark_jobs.formats.avro",
        "spark_jobs.spi",
        "spark_jobs.storage.files",
        *_DOORS,
        "pyarrow",
        "numpy",
    ),
    "spark_jobs.avro": ("spark_jobs.formats.avro", "pyarrow"),
    "spark_jobs.landing": (
        "spark_jobs.landing",
        "spark_jobs.avro",
        "spark_jobs.formats.avro",
        *_DOORS,
        "pyarrow",
        "numpy",
    ),
    "spark_jobs.spark_reads": (
        "spark_jobs.spark_reads",
        "spark_jobs.datafiles",
        "spark_jobs.packing",
        "spark_jobs.pushed_filters",
        "spark_jobs.spark_paths",
        "spark_jobs.spi",
        *_DOORS,
        "pyspark",
        "pyarrow",
    ),
    "spark_jobs.packing": (),
    "spark_jobs.spark_paths": (),
    "spark_jobs.arrow_types": ("pyspark", "pyarrow"),
    "spark_jobs.pushed_filters": ("spark_jobs.spi", *_DOORS, "pyspark"),
    "spark_jobs.engine": (
        "spark_jobs.engine",
        "spark_jobs.arrow_types",
        "spark_jobs.landing",
        "spark_jobs.packing",
        "spark_jobs.pushed_filters",
        "spark_jobs.spark_paths",
        "spark_jobs.spi",
        "spark_jobs.storage.clock",
        "spark_jobs.storage.files",
        *_DOORS,
        "pyspark",
        "py4j",  # part of pyspark
        "pyarrow",
        "numpy",
    ),
    "spark_jobs.connectors.registry": ("spark_jobs.connectors", "spark_jobs.spi", *_DOORS),
    "spark_jobs.connectors.shared": (
        "spark_jobs.connectors.shared",
        "spark_jobs.datafiles",
        "spark_jobs.packing",
        "spark_jobs.spark_reads",
        "spark_jobs.spi",
        "spark_jobs.storage",
        *_DOORS,
        "pyspark",
        "pyarrow",
        "numpy",
    ),
    "spark_jobs.connectors.paimon": (
        "spark_jobs.connectors.paimon",
        "spark_jobs.connectors.shared",
        "spark_jobs.arrow_types",
        "spark_jobs.avro",
        "spark_jobs.datafiles",
        "spark_jobs.formats",
        "spark_jobs.spark_reads",
        "spark_jobs.packing",
        "spark_jobs.spi",
        "spark_jobs.storage",
        *_DOORS,
        "pyspark",
        "pyarrow",
        "numpy",
        "pypaimon",
        "botocore",
        "fastavro",  # part of pypaimon, as the next two
        "requests",
        "urllib3",
    ),
    "spark_jobs.connectors.iceberg": (
        "spark_jobs.connectors.iceberg",
        "spark_jobs.connectors.shared",
        "spark_jobs.avro",
        "spark_jobs.datafiles",
        "spark_jobs.formats",
        "spark_jobs.spark_reads",
        "spark_jobs.packing",
        "spark_jobs.spark_paths",
        "spark_jobs.spi",
        "spark_jobs.storage",
        *_DOORS,
        "pyspark",
        "pyarrow",
        "numpy",
        "pyiceberg",
        "pydantic",  # part of pyiceberg, as the next two
        "requests",
        "sqlalchemy",
    ),
    "spark_jobs.run": (
        "spark_jobs.connectors.registry",
        "spark_jobs.engine",
        "spark_jobs.spi",
        *_DOORS,
        "pyspark",
    ),
    "spark_jobs.command": (
        "spark_jobs.run",
        "spark_jobs.engine",
        "spark_jobs.spi",
        *_DOORS,
        "pyspark",
    ),
    "spark_jobs.main": ("spark_jobs.command", "spark_jobs.python_path"),
    "spark_jobs.worker_daemon": (
        "spark_jobs.python_path",
        "spark_jobs.engine",
        "spark_jobs.datafiles",
        "pyspark",
    ),
    "spark_jobs.python_path": (),
    "spark_jobs.training": ("spark_jobs.run", *_DOORS, "pyspark"),
}


def modules(package: str) -> list[str]:
    """All modules of a package (or the module itself), sorted, without importing anything."""
    path = ROOT.joinpath(*package.split("."))
    if not path.is_dir():
        return [package] if path.with_suffix(".py").is_file() else []
    names = (p.relative_to(ROOT).with_suffix("").parts for p in path.rglob("*.py"))
    return sorted({".".join(n[:-1] if n[-1] == "__init__" else n) for n in names})


def executor_modules() -> list[str]:
    """All modules that executors import."""
    return [m for m in modules("spark_jobs") if any(fnmatchcase(m, p) for p in EXECUTOR_MODULES)]


def source_of(module: str) -> Path:
    """The file of a module."""
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def top_level(module: str) -> str:
    """The first part of a dotted name."""
    return module.partition(".")[0]


def is_stdlib(module: str) -> bool:
    """Whether a module belongs to the standard library."""
    return top_level(module) in sys.stdlib_module_names
