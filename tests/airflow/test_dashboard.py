"""The example dashboard and the page name the metrics that the code sends, and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from airflow_provider_merge.metrics import METRICS

ROOT = Path(__file__).resolve().parents[2]
NAMES = {name: each for each in METRICS for name in each.names}
# How Prometheus calls them: of a timer, its exporters make a sum and a count.
PROMETHEUS = {
    "airflow_" + name.replace(".", "_") + ending
    for name, each in NAMES.items()
    for ending in (("${total}",) if each.kind == "counter" else ("_sum", "_count"))
}
LABELS = {tag for each in METRICS for tag in each.tags}


def dashboard() -> Any:
    return json.loads((ROOT / "docs/grafana/statements.json").read_text())


def test_every_query_names_metrics_that_are_sent() -> None:
    queries = [t["expr"] for panel in dashboard()["panels"] for t in panel["targets"]]
    variables = [v["query"] for v in dashboard()["templating"]["list"] if v["type"] == "query"]

    for query in (*queries, *variables):
        names = re.findall(r"\bairflow_\w+(?:\$\{total\})?", query)
        assert names, query
        assert set(names) <= PROMETHEUS, query
        labels = re.findall(r"by \((\w+)\)|(\w+)=~", query)
        assert {name for pair in labels for name in pair if name} <= LABELS, query
        for opening, closing in ("()", "{}", "[]"):
            assert query.count(opening) == query.count(closing), query


def test_every_counter_has_a_query() -> None:
    text = json.dumps([panel["targets"] for panel in dashboard()["panels"]])
    counters = {name for name, each in NAMES.items() if each.kind == "counter"}

    left = {name for name in counters if name.replace(".", "_") not in text}

    assert left == set()


def test_grafana_finds_each_panel_and_variable() -> None:
    told = dashboard()
    ids = [panel["id"] for panel in told["panels"]]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in told["panels"]]

    assert len(set(ids)) == len(ids) == len(set(places))
    variables = {each["name"] for each in told["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(told))) - {"__rate_interval", "__all"}
    assert used <= variables
    assert all(panel["title"] and panel["description"] for panel in told["panels"])


def test_the_page_lists_the_same_metrics_and_tags() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    rows = re.findall(r"^\| (`merge\..*?) \| .* \| ([\w, ]+) \|$", page, re.MULTILINE)
    told = {
        name: {tag.strip() for tag in tags.split(",")}
        for names, tags in rows
        for name in re.findall(r"`([\w.]+)`", names)
    }

    assert told.keys() == NAMES.keys()
    for name, tags in told.items():
        # Only what failed has a code.
        known = set(NAMES[name].tags) - (set() if name.endswith(".failed") else {"code"})
        assert tags == known, name
