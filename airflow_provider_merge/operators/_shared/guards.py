"""The parameters of guards: what must hold of a statement's changes before they are published."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar, Final, cast

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.dry_run_of import DryRunOperator
from airflow_provider_merge.operators._shared.misspelt import refuse_misspelt
from airflow_provider_merge.operators._shared.partitions import partition_specs
from airflow_provider_merge.operators._shared.values import share, side_table
from airflow_provider_merge.templates import has_template, is_template
from spark_jobs.contract.guards import Guards, Limit, OutsidePartitions
from spark_jobs.contract.sizes import parse_size_option

# The parameters of the classes below, as template fields.
SOURCE_ROWS: Final = (
    "min_source_rows",
    "max_source_rows",
    "min_inserted_rows",
    "max_inserted_rows",
)
UPDATED_ROWS: Final = (
    "min_updated_rows",
    "max_updated_rows",
    "max_changed_share",
    "max_partition_changed_share",
)
DELETED_ROWS: Final = (
    "min_deleted_rows",
    "max_deleted_rows",
    "max_deleted_share",
    "max_partition_deleted_share",
)
PARTITIONS: Final = ("expected_partitions", "outside_partitions")
LATE_ROWS: Final = "quarantine_table"
REWRITES: Final = ("max_files_rewritten", "max_bytes_rewritten")
LIMIT_FIELDS: Final = (*SOURCE_ROWS, *UPDATED_ROWS, *DELETED_ROWS, *REWRITES)
_SHARES: Final = frozenset(name for name in LIMIT_FIELDS if name.endswith("_share"))
_SIZE: Final = "max_bytes_rewritten"
_PERCENT: Final = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%\s*")
_WHOLE: Final = re.compile(r"\s*[0-9]{1,18}\s*")


class GuardedOperator(DryRunOperator):
    """Publishes what a statement changes only if its guards hold; else GUARD_FAILED, for good.

    A number of rows or files may be written as a share of those of the table: ``"5%"``.
    """

    def __init__(self, **kwargs: Any) -> None:
        refuse_misspelt(kwargs.get("default_args"), self.parameter_names)
        super().__init__(**kwargs)

    def guards(self) -> Guards | None:
        """The guards, from rendered parameters; None: none is set.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        given = {name: getattr(self, name) for name in LIMIT_FIELDS if hasattr(self, name)}
        found: dict[str, Any] = {
            name: _value(name, value) for name, value in given.items() if value is not None
        }
        return Guards(**found) if found else None

    def check_known_guards(self) -> None:
        """Check the guards that are no templates.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        for name in LIMIT_FIELDS:
            value = getattr(self, name, None)
            if value is not None and not is_template(value):
                _value(name, value)


class SourceRowGuards(GuardedOperator):
    """Guards of statements with a source.

    :param min_source_rows: so many rows are read from the source at least
    :param max_source_rows: so many rows are read from the source at most
    :param min_inserted_rows: so many rows are inserted at least
    :param max_inserted_rows: so many rows are inserted at most
    """

    def __init__(
        self,
        *,
        min_source_rows: int | str | None = None,
        max_source_rows: int | str | None = None,
        min_inserted_rows: int | str | None = None,
        max_inserted_rows: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.min_source_rows = min_source_rows
        self.max_source_rows = max_source_rows
        self.min_inserted_rows = min_inserted_rows
        self.max_inserted_rows = max_inserted_rows
        self.check_known_guards()


class UpdatedRowGuards(GuardedOperator):
    """Guards of statements that update rows.

    :param min_updated_rows: so many rows are updated at least
    :param max_updated_rows: so many rows are updated at most
    :param max_changed_share: the share of the table's rows that may be updated or deleted:
        ``0.05``, or ``"5%"``
    :param max_partition_changed_share: the same of the rows of each partition that changes
    """

    def __init__(
        self,
        *,
        min_updated_rows: int | str | None = None,
        max_updated_rows: int | str | None = None,
        max_changed_share: float | str | None = None,
        max_partition_changed_share: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.min_updated_rows = min_updated_rows
        self.max_updated_rows = max_updated_rows
        self.max_changed_share = max_changed_share
        self.max_partition_changed_share = max_partition_changed_share
        self.check_known_guards()


class DeletedRowGuards(GuardedOperator):
    """Guards of statements that delete rows.

    :param min_deleted_rows: so many rows are deleted at least
    :param max_deleted_rows: so many rows are deleted at most
    :param max_deleted_share: the share of the table's rows that may be deleted: ``0.05``, or
        ``"5%"``
    :param max_partition_deleted_share: the same of the rows of each partition that changes
    """

    def __init__(
        self,
        *,
        min_deleted_rows: int | str | None = None,
        max_deleted_rows: int | str | None = None,
        max_deleted_share: float | str | None = None,
        max_partition_deleted_share: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.min_deleted_rows = min_deleted_rows
        self.max_deleted_rows = max_deleted_rows
        self.max_deleted_share = max_deleted_share
        self.max_partition_deleted_share = max_partition_deleted_share
        self.check_known_guards()


class RewriteGuards(GuardedOperator):
    """Guards of what a statement costs, checked before it writes anything.

    :param max_files_rewritten: so many data files may have to be rewritten or replaced at most
    :param max_bytes_rewritten: their size at most: bytes, or ``"10 gb"``
    """

    def __init__(
        self,
        *,
        max_files_rewritten: int | str | None = None,
        max_bytes_rewritten: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.max_files_rewritten = max_files_rewritten
        self.max_bytes_rewritten = max_bytes_rewritten
        self.check_known_guards()


class PartitionGuards(GuardedOperator):
    """Guards of where a statement changes rows.

    :param expected_partitions: list of dicts of partition column → value: the only partitions that
        may change
    :param outside_partitions: what becomes of changes elsewhere: ``fail`` (default), or ``keep``
        them and report the partitions. MERGE and INSERT INTO have ``quarantine``, too
    """

    # A parameter of statements with a source.
    quarantine_table: str | None = None
    sets_rows_aside: ClassVar[bool] = False

    def __init__(
        self,
        *,
        expected_partitions: Sequence[Mapping[str, Any]] | str | None = None,
        outside_partitions: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.expected_partitions = expected_partitions
        self.outside_partitions = outside_partitions
        given = [expected_partitions, outside_partitions, self.quarantine_table]
        if not has_template(given):
            self._with_partitions(Guards())

    def guards(self) -> Guards | None:
        """The guards, these among them; raises the same."""
        given = [self.expected_partitions, self.outside_partitions, self.quarantine_table]
        found = super().guards()
        return found if given == [None] * len(given) else self._with_partitions(found or Guards())

    def _with_partitions(self, guards: Guards) -> Guards:
        expected = self.expected_partitions
        if expected is not None:
            expected = partition_specs("expected_partitions", expected)
        outside = cast("OutsidePartitions | None", self.outside_partitions)
        if outside == "quarantine" and not self.sets_rows_aside:
            problem = "'quarantine' means nothing for rows that are in the table already"
            raise invalid("outside_partitions", problem, "Write fail or keep.")
        late = self.quarantine_table
        return replace(
            guards,
            expected_partitions=expected,
            outside_partitions=outside,
            quarantine_table=None if late is None else side_table(LATE_ROWS, late),
        )


class LateRowGuards(PartitionGuards):
    """Guards of where a statement with a source changes rows.

    :param quarantine_table: with ``outside_partitions="quarantine"``, ``database.table`` on the
        same connection: it gets the source's rows of partitions that are not expected
    """

    sets_rows_aside = True

    def __init__(self, *, quarantine_table: str | None = None, **kwargs: Any) -> None:
        # The partitions are checked with it.
        self.quarantine_table = quarantine_table
        super().__init__(**kwargs)


def _value(name: str, value: Any) -> Limit | float | int | None:
    if name in _SHARES:
        percent = _percent(value)
        return share(name, value if percent is None else percent)
    if name == _SIZE:
        return _size(name, value)
    return _limit(name, value)


def _percent(value: Any) -> float | None:
    """The share of a text such as ``5%``, at most 1; None: it is none."""
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    number = Decimal(found[1]) / 100 if found else Decimal(2)
    return float(number) if number <= 1 else None


def _whole(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else None
    is_whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_whole else None


def _limit(name: str, value: Any) -> Limit:
    number, percent = _whole(value), _percent(value)
    if number is None and percent is None:
        problem = f"{value!r} is neither a whole number nor a share such as '5%'"
        raise invalid(name, problem, "Write 0, 1, 2 ..., or '0%' to '100%'.")
    return Limit(number, percent if number is None else None)


def _size(name: str, value: Any) -> int:
    number = _whole(value)
    if number is not None:
        return number
    try:
        return parse_size_option(value if isinstance(value, str) else "")
    except ValueError:
        remedy = "Write a number of bytes, or a size such as '10 gb'."
        raise invalid(name, f"{value!r} is not a size", remedy) from None
