"""Options of tables: each is honoured, refused or without effect, and the page says which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pypaimon.common.options.config_option import ConfigOption
from pypaimon.common.options.core_options import CoreOptions

from spark_jobs.contract.maintenance import CreateTagSpec, DeleteTagSpec, RollbackSpec
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.refused_options import REFUSED
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.maintenance import ConnectorMaintenance
from tests.connectors.paimon.options_page import HONOURED, NO_EFFECT, kinds_of, page
from tests.support.paimon_tables import NAME, append, create, read, snapshot_ids

PAGE = Path(__file__).resolve().parents[3] / "docs" / "paimon-options.md"
OF_PYPAIMON: list[ConfigOption[Any]] = [
    each for each in vars(CoreOptions).values() if isinstance(each, ConfigOption)
]
BAD = "hour"


def names_for(use: str) -> list[str]:
    """The options that are refused for a use, a column's name for each ``*``."""
    return [name.replace("*", "id") for name, each in REFUSED.items() if use in each.uses]


@pytest.fixture
def maintenance(connector: Connector) -> ConnectorMaintenance:
    assert connector.maintenance is not None
    return connector.maintenance


@pytest.fixture
def schema(connector: Connector, warehouse: Path) -> Path:
    """The schema of a table of one row, as a file that another engine may write."""
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    return warehouse / "shop.db/orders/schema/schema-0"


def set_option(schema: Path, name: str, value: str) -> None:
    document = json.loads(schema.read_text())
    document["options"][name] = value
    schema.write_text(json.dumps(document))


@pytest.mark.parametrize("option", [each.key() for each in OF_PYPAIMON])
def test_every_option_of_pypaimon_is_in_one_list(option: str) -> None:
    assert len(kinds_of(option)) == 1, f"{option} is in {kinds_of(option)}: see options.toml"


def test_no_option_is_in_two_lists() -> None:
    names = [*HONOURED, *REFUSED, *(name for names in NO_EFFECT.values() for name in names)]
    assert {name: kinds_of(name) for name in names if len(kinds_of(name)) != 1} == {}


def test_the_page_is_made_of_the_lists() -> None:
    assert PAGE.read_text() == page()


def test_what_an_option_is_by_default_is_never_refused() -> None:
    known = {each.key(): each for each in OF_PYPAIMON}
    for name, refusal in REFUSED.items():
        if name in known and known[name].has_default_value():
            default = known[name].default_value()
            text = str(getattr(default, "value", default)).lower()
            assert text in refusal.accepted, name


@pytest.mark.parametrize("option", names_for("read"))
def test_refused_for_every_use(connector: Connector, schema: Path, option: str) -> None:
    set_option(schema, option, BAD)

    with pytest.raises(NotSupportedError, match=f"option {option} = {BAD}"):
        connector.metadata.load_table(NAME)


@pytest.mark.parametrize("option", sorted({*names_for("write")} - {*names_for("read")}))
def test_refused_as_a_target(connector: Connector, schema: Path, option: str) -> None:
    set_option(schema, option, BAD)

    assert read(connector) == [{"id": 1}], "it is read as before"
    with pytest.raises(NotSupportedError, match=f"option {option} = {BAD}"):
        connector.metadata.require_writable(connector.metadata.load_table(NAME))


@pytest.mark.parametrize("option", sorted({*names_for("tag")} - {*names_for("read")}))
def test_refused_for_tags_and_rollback(
    connector: Connector, maintenance: ConnectorMaintenance, schema: Path, option: str
) -> None:
    append(connector, [{"id": 2}])
    maintenance.create_tag(NAME, CreateTagSpec("one", 1))
    set_option(schema, option, BAD)

    for refused in (
        lambda: maintenance.create_tag(NAME, CreateTagSpec("two")),
        lambda: maintenance.delete_tag(NAME, DeleteTagSpec("one"), dry_run=False),
        lambda: maintenance.roll_back(NAME, RollbackSpec(1, force=True), dag_id="", dry_run=False),
    ):
        with pytest.raises(NotSupportedError, match=f"option {option} = {BAD}"):
            refused()
    assert [path.name for path in schema.parents[1].glob("tag/*")] == ["tag-one"]
    assert snapshot_ids(connector) == [1, 2]


@pytest.mark.parametrize(
    ("option", "value"),
    [(name.replace("*", "id"), value) for name, r in REFUSED.items() for value in r.accepted],
)
def test_what_is_accepted(connector: Connector, schema: Path, option: str, value: str) -> None:
    set_option(schema, option, value.upper())

    connector.metadata.require_writable(connector.metadata.load_table(NAME))


@pytest.mark.parametrize("option", ["commit.callbacks", "scan.snapshot-id", "branch"])
def test_tables_with_refused_options_are_not_made(
    connector: Connector, warehouse: Path, option: str
) -> None:
    spec = CreateTableSpec((ColumnSpec("id", "INT"),), table_options={option: BAD})

    with pytest.raises(NotSupportedError, match=f"option {option} = {BAD}"):
        connector.metadata.create_table(TableName("shop", "new"), spec)

    assert not (warehouse / "shop.db").exists()


def test_a_tag_has_the_retention_of_the_table(
    maintenance: ConnectorMaintenance, connector: Connector, schema: Path
) -> None:
    set_option(schema, "tag.default-time-retained", "0 ms")

    maintenance.create_tag(NAME, CreateTagSpec("short"))
    maintenance.create_tag(NAME, CreateTagSpec("long", retention="1 d"))

    assert maintenance.delete_tag(NAME, DeleteTagSpec(None), dry_run=False).tags == 1
    assert [path.name for path in schema.parents[1].glob("tag/*")] == ["tag-long"]


def test_a_retention_that_is_none_is_named(
    maintenance: ConnectorMaintenance, connector: Connector, schema: Path
) -> None:
    set_option(schema, "tag.default-time-retained", "long")

    with pytest.raises(NotSupportedError, match=r"tag\.default-time-retained: 'long' is not a dur"):
        maintenance.create_tag(NAME, CreateTagSpec("short"))

    assert not list(schema.parents[1].glob("tag/*"))
