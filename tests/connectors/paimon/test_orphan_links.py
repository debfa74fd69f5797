"""Symbolic links in a table's folder: no search for orphan files follows or removes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from spark_jobs.connectors.paimon.maintenance.table_maintenance import PaimonMaintenance
from spark_jobs.contract.maintenance import RemoveOrphanFilesSpec
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import NAME, append, create, read


def test_links_are_neither_followed_nor_removed(
    connector: Connector, warehouse: Path, tmp_path: Path
) -> None:
    create(connector, {"id": "int", "k": "string"}, ["k"])
    append(connector, [{"id": 1, "k": "x"}], "op")
    connector.writes.release_guard(connector.metadata.load_table(NAME), "op")
    table, others = warehouse / "shop.db/orders", tmp_path / "others/bucket-0"
    others.mkdir(parents=True)
    (others / "data-of-others").write_text("x")
    (table / "k=x/bucket-0/data-orphan").write_text("x")
    (table / "bucket-1").symlink_to(others)
    (table / "k=z").symlink_to(tmp_path / "others")
    (table / "k=x/again").symlink_to(table / "k=x")
    (table / "k=x/bucket-0/data-link").symlink_to(others / "data-of-others")
    given: Any = connector.maintenance
    # A clock that is six seconds ahead: what is older than five seconds may go.
    later = PaimonMaintenance(
        given._metadata, given._storage, lambda: datetime.now(UTC) + timedelta(seconds=6)
    )

    report = later.remove_orphan_files(
        NAME, RemoveOrphanFilesSpec("1 s"), dry_run=False, spark=None
    )

    assert list(report.files) == ["k=x/bucket-0/data-orphan"]
    assert (others / "data-of-others").exists()
    assert (table / "k=x/bucket-0/data-link").is_symlink()
    assert read(connector) == [{"id": 1, "k": "x"}]
