"""The example DAGs of MERGE, UPDATE and DELETE, as they are, on a small landing folder."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

# Statements through Airflow are also in live/test_statements and in the tutorial.
pytestmark = [pytest.mark.slow, pytest.mark.extended]

EXAMPLES = Path(__file__).resolve().parents[2] / "dags_examples"
DAY = "2024-05-06"


def land(lake, name, text):
    folder = lake.folder / "landing" / name / DAY
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part.csv").write_text(text)


def run(lake, dag_id):
    for name in (f"{dag_id}.py", f"sql/{dag_id}.sql"):
        if (EXAMPLES / name).exists():
            copy = lake.folder / "dags" / name
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(EXAMPLES / name, copy)
    folders = {name: str(lake.folder / name) for name in ("landing", "reports")}
    conf = json.dumps(folders)
    done = lake.airflow("dags", "test", dag_id, DAY, "--conf", conf)
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


def orders(lake):
    return {
        row["order_id"]: (row["customer"], Decimal(row["amount"]), row["status"], row["address"])
        for row in lake.read("shop.orders")["rows"]
    }


def test_merge_update_delete(lake):
    land(
        lake,
        "updates",
        "order_id,customer,amount,city,zip,cancelled\n"
        "1,ann,10.00,Bonn,53111,false\n2,bob,20.00,Ulm,89073,false\n3,cid,30.00,Kiel,24103,false\n"
        "3,cid,30.00,Kiel,24103,false\n4,dan,40.00,Mainz,55116,true\n",
    )
    assert "inserted 3 | updated 0 | deleted 0" in run(lake, "merge_orders")

    land(
        lake,
        "updates",
        "order_id,customer,amount,city,zip,cancelled\n"
        "1,ann,11.00,Köln,99999,false\n3,cid,30.00,Kiel,24103,true\n5,eve,50.00,Jena,07743,false\n",
    )
    assert "inserted 1 | updated 1 | deleted 1" in run(lake, "merge_orders")
    assert orders(lake)[1] == ("ann", Decimal("11.00"), "open", {"city": "Köln", "zip": "53111"})

    land(lake, "payments", "order_id,paid\n1,11.00\n2,19.99\n")
    assert "inserted 0 | updated 1 | deleted 0" in run(lake, "settle_orders")
    assert {key: row[2] for key, row in orders(lake).items()} == {
        1: "settled",
        2: "open",
        5: "open",
    }

    land(lake, "forget", "customer\nbob\nnobody\n")
    assert "inserted 0 | updated 0 | deleted 1" in run(lake, "forget_customers")
    assert sorted(orders(lake)) == [1, 5]

    assert "1 open orders: " in run(lake, "check_orders")
    (report,) = (lake.folder / "reports").glob("open_orders/*/*.csv")
    assert report.read_text() == '"order_id","customer","amount"\n5,"eve","50.00"\n'
    assert not list((lake.folder / "tmp").glob("merge-job-*")), "request files are removed"
