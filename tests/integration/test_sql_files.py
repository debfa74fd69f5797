"""Files as people write them for spark-sql, through the operator and the job, on both formats."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_merge import job_package
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.templates import all_known
from tests.airflow.contexts import DAY, context_of
from tests.airflow.support import connection
from tests.support.turns import has_turn

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FILES = Path(__file__).parent / "sql_files"
FORMATS = ("paimon", "iceberg")
Rows = list[list[Any]] | None
# The rows of each table afterwards, as JSON has them; of a file for one format behind its name.
EXPECTED: dict[str, dict[str, Rows]] = {
    "mixed_names": {"shop.orders": [[1, "new", 10], [2, "new", 2]], "other.copies": [[1]]},
    "comments": {"shop.a": [[2, "it's; --no comment;"], [3, "/* neither */"]]},
    "several_statements": {
        "shop.orders": [[1, "11.50", "a"], [4, "40.00", "c"]],
        "shop.updates": [],
    },
    "created_as": {
        "shop.regions": [["eu", 30], ["us", 5]],
        "shop.large": [["eu", 30]],
    },
    "replaced": {
        "shop.latest": [[2, "new"], [3, "new"]],
        "shop.gone": [["another"]],
        "shop.never": None,
    },
    "views": {
        "shop.orders": [[1, "x", 10], [2, "y", 20], [3, "x", 30], [4, "y", 1]],
        "shop.totals": [["y", 21]],
    },
    "overwrites": {
        "shop.static": [[7, "a"], [8, "c"]],
        "shop.dynamic": [[7, "a"]],
        "shop.plain": [[9]],
    },
    "settings": {
        "shop.times": [
            [1, "2026-01-31 17:00:00", 2],
            [2, "2026-01-31 03:00:00", 21],
        ]
    },
    "templates": {
        "shop.daily": [[0, "2026-01-31"], [2, "2026-01-31"], [9, "{{ ds }}"]],
    },
    "definitions": {
        "shop.t": [[1, "a"], [3000000000, "b"]],
        "shop.like_it": [[3000000000, "m", "b"]],
    },
    "queries": {
        "shop.numbers": [[1, "one"], [2, "two"], [3, "three"], [4, None]],
        "shop.found": [[1, "ONE"], [2, "two"], [3, "THREE"], [300, "three"], [4, "none"]],
    },
    "calls.paimon": {"shop.t": [[1, "a"], [2, "b"], [4, "c"]]},
    "calls.iceberg": {"shop.t": [[1, "a"], [2, "b"], [4, "c"]]},
}
_ALL = [
    (name, format_)
    for name in EXPECTED
    for format_ in FORMATS
    if not name.startswith("calls.") or name.endswith(format_)
]
CASES = [case for number, case in enumerate(_ALL) if has_turn(number, 8)]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of each file, by its name and the format, of one Spark session for all."""
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        # Nothing is submitted: it does not matter which package a job would get.
        patch.setattr(job_package, "require_no_other_package", lambda: None)
        for name, format_ in CASES:
            batch = _batch(patch, tmp_path_factory.mktemp("lake"), name, format_)
            (folder / f"{name}@{format_}.json").write_text(batch)
            (folder / f"{name}@{format_}.tables").write_text("\n".join(EXPECTED[name]))
    python = Path(os.environ["MERGE_SPARK_ENV"]) / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "tests.integration.sql_files_job", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _batch(patch: pytest.MonkeyPatch, lake: Path, name: str, format_: str) -> str:
    """The batch that the task of a file submits."""
    extra: dict[str, Any] = {"warehouse": str(lake), "spark-catalog-name": "lake"}
    host = {}
    if format_ == "iceberg":
        extra |= {"type": "sql", "warehouse": f"file://{lake}", "workspace": str(lake)}
        host = {"host": f"sqlite:///{lake}/catalog.db"}
    connection(patch, "files_default", conn_type=format_, extra=extra, **host)
    connection(patch, "spark_default", conn_type="spark", host="local[2]")
    with DAG(
        name,
        schedule=None,
        start_date=DAY,
        template_searchpath=str(FILES),
        params={"table": "daily"},
    ) as dag:
        StatementsOperator(
            task_id="files",
            catalog_conn_id="files_default",
            sql=f"{name}.sql",
            allow_drop=True,
        )
    dag.resolve_template_files()
    operator = dag.get_task("files").prepare_for_execution()
    context = context_of(operator, logical_date=DAY)
    operator.render_template_fields(context, dag.get_template_env())
    task: StatementsOperator = context["task"]
    hook = catalog_hook("files_default")
    with all_known():
        task.check_sql()
        task.require_used_catalogs(hook)
        known = task._known_operators()
        requests = {each: found.job_request(context, hook, each) for each, found in known.items()}
        # Nothing of what the file makes is there yet.
        task._require_valid(known, requests, hook)
        return task._batch(context, requests).to_json()


def test_every_file_is_tried() -> None:
    assert {each.name.removesuffix(".sql") for each in FILES.iterdir()} == set(EXPECTED)


@pytest.mark.parametrize(("name", "format_"), CASES, ids=[f"{n}-{f}" for n, f in CASES])
def test_a_file_does_what_it_says(outcomes: dict[str, Any], name: str, format_: str) -> None:
    found = outcomes[f"{name}@{format_}"]
    assert found["errors"] == {}
    assert found["tables"] == EXPECTED[name]
