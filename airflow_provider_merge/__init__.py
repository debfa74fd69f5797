"""Airflow operators that run MERGE pipelines on lakehouse tables with Spark."""

from airflow_provider_merge.job_package import require_own_package

# Every module of this package imports spark_jobs.contract; another package of that name in front of
# it on sys.path would end in an ImportError that explains nothing.
require_own_package()
