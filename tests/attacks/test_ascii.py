"""Own texts survive terminals and databases that know nothing but ASCII."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

from spark_jobs.contract.inserts import TruncateTableSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName

_ROOT = Path(__file__).resolve().parents[2]
# Characters that are compared with texts of others, or that only a browser is sent.
_OTHERS = {
    "airflow_provider_merge/ui/row_samples/reader.py": {"\u2026"},
    "airflow_provider_merge/sql/lexer.py": {"[\ud800-\udfff]"},
    "airflow_provider_merge/sql/text.py": {"\ufeff"},
    "spark_jobs/contract/row_preview.py": {"\u2026"},
    "spark_jobs/contract/codec.py": set("\ud800\udfff"),
    "spark_jobs/contract/durations.py": {r"([0-9]{1,12})\s*([a-zA-Z" + "\u00b5]*)"},
    "spark_jobs/formats/paimon/paths.py": {"\x85\xa0\u2007\u202f"},
}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def texts(tree: ast.Module) -> Iterator[str]:
    """All texts of a module but its docstrings."""
    documentation = {
        id(each.value)
        for node in ast.walk(tree)
        if isinstance(node, _DOCUMENTED)
        for each in node.body
        if isinstance(each, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            if isinstance(node.value, str):
                yield node.value
            elif isinstance(node.value, bytes):
                yield node.value.decode("latin-1")


def test_own_texts_are_ascii() -> None:
    found: dict[str, set[str]] = {}
    for package in ("airflow_provider_merge", "spark_jobs"):
        for path in sorted((_ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            foreign = {each for each in texts(tree) if not each.isascii()}
            if foreign:
                found[str(path.relative_to(_ROOT))] = foreign

    assert found == _OTHERS


def test_a_job_prints_names_that_its_terminal_cannot_show(tmp_path: Path) -> None:
    request = JobRequest(
        str(uuid.uuid4()),
        TableName("shop", "gr\u00f6\u00dfe"),
        CatalogSpec("paimon", str(tmp_path)),
        TruncateTableSpec(),
    )
    path = tmp_path / "request.json"
    path.write_text(request.to_json(), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "spark_jobs.main", "--no-session", "--request", str(path)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        cwd=_ROOT,
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert rb"TABLE_NOT_FOUND: " in done.stderr
    assert rb"gr\xf6\xdfe" in done.stderr
    assert (done.stdout + done.stderr).isascii()
    stored = json.loads((tmp_path / f"_operations/{request.operation_id}.json").read_bytes())
    assert "gr\u00f6\u00dfe" in stored["error"]["message"]
