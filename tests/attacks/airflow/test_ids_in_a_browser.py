"""Ids of 19 digits, which all Iceberg tables have and browsers round, on pages in a browser."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

import airflow_provider_merge.ui as pages
from airflow_provider_merge.operators._shared.results import xcom_value
from spark_jobs.contract.result import JobResult, Metrics
from tests.live.browser import Browser, NotInstalledError, browsing
from tests.support.small_server import Answer, serving

LONG = 7_203_685_477_580_711_937
STATIC = Path(pages.__path__[0]) / "static"
# A value of somebody's that looks like JSON with such an id stays the text that it is.
HOSTILE = f'": {LONG}, "day": [{LONG}]'
_RESULT = xcom_value(
    JobResult(
        operation_id="op",
        status="dry_run",
        target="shop.orders",
        request_digest="0",
        metrics=Metrics(inserted=3),
        base_snapshot_id=LONG,
        partitions=({"values": {"day": HOSTILE}, "name": f"day={HOSTILE}"},),
    )
)
_TASK = {
    "dag_id": "night",
    "rendered_fields": {"catalog_conn_id": "iceberg_default", "target": "shop.orders"},
}


def _answer(path: str) -> Answer:
    """What Airflow's server answers to a page's requests."""
    if path.startswith("/api/v2/"):
        value = {"value": json.dumps(_RESULT) if "as_text" in path else _RESULT}
        return 200, value if "/xcomEntries/" in path else _TASK
    name = "page.html" if path == "/lakehouse/preview" else path.rpartition("/")[2]
    content = (STATIC / name).read_bytes()

    def send(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", mimetypes.guess_type(name)[0] or "text/plain")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    return send


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        with browsing(tmp_path_factory.mktemp("browser")) as window:
            yield window
    except NotInstalledError as error:
        pytest.skip(str(error))


# Airflow answers with the value as JSON, or as the text that it keeps.
@pytest.mark.parametrize("task_id", ["as_json", "as_text"])
def test_a_dry_run_links_to_the_snapshot_that_it_read(browser: Browser, task_id: str) -> None:
    with serving(_answer) as server:
        browser.open(f"{server}/lakehouse/preview?dag_id=night&run_id=run&task_id={task_id}")

        link = f"//a[.='The table at snapshot {LONG}']"
        assert browser.text(link)
        found = browser.run("return document.querySelector('a[href*=snapshot]').href")
        assert f"snapshot={LONG}" in found
        shown = browser.run("return document.body.innerText")
        assert f"day={HOSTILE}" in shown
