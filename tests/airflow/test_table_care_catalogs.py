"""Care for two catalogs: patterns that begin with a catalog's name, as names of tables may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from dags_examples import lakehouse_care as lakehouse_example
from tests.airflow.cared_tables import Tries, table
from tests.airflow.support import connection
from tests.support.iceberg_tables import IcebergTable


@pytest.fixture
def lake(warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables of the catalog ``lake``, and one of another catalog, ``sea``."""
    for name in ("orders", "items"):
        table(warehouse, name, files=6)
    table(tmp_path / "sea", "orders", files=6)
    places = {"paimon_default": ("lake", warehouse), "other": ("sea", tmp_path / "sea")}
    for conn_id, (name, place) in places.items():
        extra = {"warehouse": str(place), "spark-catalog-name": name}
        connection(monkeypatch, conn_id, conn_type="paimon", extra=extra)
    return warehouse


def planned(**parameters: Any) -> list[Any]:
    """The tables of a plan, with their catalogs."""
    steps = Tries().run(dry_run=True, **parameters)["tables"]
    return sorted((each["catalog"], each["table"]) for each in steps)


@pytest.mark.parametrize("tables", ["lake.shop.*", "lake.*.*", ["lake.shop.orders", "shop.items"]])
def test_the_catalog_may_be_named(lake: Path, tables: str | list[str]) -> None:
    assert planned(tables=tables) == planned(tables="shop.*")
    assert len(planned(tables=tables)) == 2


def test_a_pattern_is_about_the_catalog_that_it_names(lake: Path) -> None:
    both = {"more_catalogs": ["other"]}
    assert planned(tables="sea.shop.*", **both) == [("other", "shop.orders")]
    assert planned(tables="shop.orders", exclude="lake.shop.*", **both) == [
        ("other", "shop.orders")
    ]
    assert len(planned(tables=["sea.*.*", "lake.*.orders"], **both)) == 2


@pytest.mark.parametrize("field", ["tables", "exclude"])
def test_another_name_is_refused(lake: Path, field: str) -> None:
    with pytest.raises(AirflowFailException) as raised:
        planned(**{field: "sea.shop.*"})

    assert str(raised.value).startswith(
        "REQUEST_INVALID: connection 'paimon_default', spark-catalog-name: is 'lake', and "
        "sea.shop.* is in the catalog sea"
    )
    assert "Write shop.*, or sea into" in str(raised.value)


def test_a_catalog_without_a_name(warehouse: Path) -> None:
    table(warehouse, "orders", files=6)

    with pytest.raises(AirflowFailException, match="is empty, and lake"):
        planned(tables="lake.shop.*")


def test_a_typo_behind_the_catalog(lake: Path) -> None:
    with pytest.raises(
        AirflowFailException, match=r"'lake\.shp\.\*' fits no table of paimon_default"
    ):
        planned(tables="lake.shp.*")


def test_nothing_is_in_the_catalog(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"warehouse": str(warehouse), "spark-catalog-name": "lake"}
    connection(monkeypatch, "paimon_default", conn_type="paimon", extra=extra)

    assert planned(tables="lake.*.*") == []


def test_namespaces_of_several_levels_are_no_catalogs(iceberg_catalog: Any) -> None:
    IcebergTable.create(iceberg_catalog, ("shop", "north", "orders"))
    IcebergTable.create(iceberg_catalog, ("shop", "north", "old"))

    asked = {"catalog_conn_id": "iceberg_default"}
    found = planned(tables="shop.north.*", exclude="shop.*.old", **asked)
    assert found == [("iceberg_default", "`shop.north`.`orders`")]
    with pytest.raises(AirflowFailException, match="and north"):
        planned(tables="north.shop.*", **asked)


def test_the_example_is_a_group_for_two_catalogs() -> None:
    plan = lakehouse_example.dag.task_dict["lakehouse_care.plan"]
    assert plan.more_catalogs == ["iceberg_default"]
    assert "tables" not in plan.given
