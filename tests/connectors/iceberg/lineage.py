"""A model of the ids of rows: an id never changes, never doubles and never comes back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.judge.iceberg_spark import CATALOG, IcebergSpark


class Lineage(NamedTuple):
    """The id of a row, and the sequence number of the snapshot that changed it last."""

    row_id: int
    number: int


@dataclass
class Ids:
    """Those of the rows of ``table`` by the values of ``key``, as Spark with Iceberg reads them."""

    judge: IcebergSpark
    table: str
    key: str = "id"
    rows: dict[object, Lineage] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)

    def read(self) -> dict[object, Lineage]:
        """The rows as they are now; no two have one id."""
        found = self.judge.sql(
            f"SELECT {self.key} AS k, _row_id AS r, _last_updated_sequence_number AS n "
            f"FROM {CATALOG}.{self.table}"
        )
        rows = {each["k"]: Lineage(each["r"], each["n"]) for each in found}
        assert len(rows) == len(found), "keys are not unique"
        ids = [each.row_id for each in rows.values()]
        assert None not in ids, rows
        assert len({*ids}) == len(ids), f"ids are doubled: {sorted(ids)}"
        return rows

    def follow(
        self,
        changed: Iterable[object] = (),
        new: Iterable[object] = (),
        gone: Iterable[object] = (),
    ) -> None:
        """Check what a step did to the rows with these keys, and nothing to others."""
        now, changed, new, gone = self.read(), {*changed}, {*new}, {*gone}
        assert now.keys() == (self.rows.keys() - gone) | new
        for key, lineage in now.items():
            before = self.rows.get(key)
            if key in new:
                assert lineage.row_id not in self.known, f"{key} has an old id"
                continue
            assert before is not None
            assert lineage.row_id == before.row_id, f"{key}: {before} became {lineage}"
            if key in changed:
                assert lineage.number > before.number, f"{key}: {before} became {lineage}"
            else:
                assert lineage.number == before.number, f"{key}: {before} became {lineage}"
        self.rows = now
        self.known |= {each.row_id for each in now.values()}
