"""``Scd2Operator``: a slowly changing dimension, type 2, as one atomic snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, ClassVar, Final

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.cdc_parameters import is_cdc
from airflow_provider_merge.operators._shared.guards import (
    DELETED_ROWS,
    PARTITIONS,
    REWRITES,
    SOURCE_ROWS,
    UPDATED_ROWS,
    DeletedRowGuards,
    PartitionGuards,
    RewriteGuards,
    SourceRowGuards,
    UpdatedRowGuards,
)
from airflow_provider_merge.operators._shared.row_operator import RowOperator
from airflow_provider_merge.operators._shared.source_parameters import (
    reads_changes,
    to_sources,
)
from airflow_provider_merge.operators._shared.values import column_list, text
from airflow_provider_merge.templates import (
    PLACEHOLDER,
    chosen_later,
    has_template,
    is_template,
    with_placeholders,
)
from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.request import Source
from spark_jobs.contract.scd2 import VERSIONS, Scd2Source
from spark_jobs.contract.scd2_merge import require_events, scd2_merge
from spark_jobs.contract.sql_text import unquoted
from spark_jobs.contract.statements import MergeSpec
from spark_jobs.contract.table_versions import CHANGE_TYPE

_NAMES: Final = ("valid_from", "valid_to", "current", "deleted", "effective", "delete_marker")
_TIMES: Final = ("as_of", "open_end")
_CHOICES: Final = ("hard_deletes", "late", "corrections")
_ALL: Final = "all"
# Beside a template: a time with which the other parameters can be checked.
_SOME_TIME: Final = "2026-01-31"


class Scd2Operator(
    DeletedRowGuards,
    UpdatedRowGuards,
    RewriteGuards,
    PartitionGuards,
    SourceRowGuards,
    RowOperator,
):
    """Keeps each version of a row with the time from when until when it is valid.

    A MERGE whose source is made of the rows of ``source`` and of the versions that the target has
    of their keys: rows that say something new become versions, and the ones before them end. What
    has no template is checked when the DAG is parsed; everything is checked before Spark starts.
    Guide: docs/operators/scd2.md.

    :param source: ``file_source(…)``, ``changes_source(…)``, ``cdc_source(…)`` or another one
    :param keys: the columns that tell things apart
    :param tracked: the columns whose changes make a version; ``all`` (default): all but the keys,
        those that this operator writes, and ``effective``. Others are stored as they were when the
        version began
    :param valid_from: the target's column with the time from which on a version is valid
    :param valid_to: the target's column with the time from which on it is not valid any more
    :param current: the target's BOOLEAN column that is true in the versions that are valid; none
        by default
    :param deleted: the target's BOOLEAN column that is true in records of deletions; none by
        default
    :param effective: the source's column with the time from which on a row is valid; of a
        ``cdc_source``, at which an event happened
    :param as_of: without ``effective``, that time for all rows; the time at which keys that are
        gone were deleted
    :param hard_deletes: what becomes of keys that are deleted: ``ignore`` (default) them, ``close``
        their versions, or end them with a ``new_record`` that has ``deleted``
    :param delete_marker: the source's BOOLEAN column that is true in rows of deleted keys; by
        default, ``_change_type`` of a ``changes_source``, else the keys that the source lacks are
        deleted
    :param late: a row that is older than the newest version of its key: ``insert_between`` the
        versions (default with ``effective``), or ``fail``
    :param corrections: a row with the time of a version and other values: ``fail`` (default),
        ``ignore`` it, or ``overwrite`` the version
    :param open_end: ``valid_to`` of versions that are valid: NULL by default, or a date or time
    """

    template_fields: Sequence[str] = (
        *RowOperator.template_fields,
        *SOURCE_ROWS,
        *DELETED_ROWS,
        *UPDATED_ROWS,
        *REWRITES,
        *PARTITIONS,
        "source",
        "keys",
        "tracked",
        *_NAMES,
        *_TIMES,
        *_CHOICES,
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **RowOperator.template_fields_renderers,
        "source": "json",
        "keys": "json",
        "tracked": "json",
        "checks": "json",
    }

    def __init__(
        self,
        *,
        source: Mapping[str, Any],
        keys: Sequence[str],
        valid_from: str = "valid_from",
        valid_to: str = "valid_to",
        tracked: Sequence[str] | str = _ALL,
        current: str | None = None,
        deleted: str | None = None,
        effective: str | None = None,
        as_of: str | None = None,
        hard_deletes: str = "ignore",
        delete_marker: str | None = None,
        late: str | None = None,
        corrections: str = "fail",
        open_end: str | date | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.keys = keys
        self.valid_from = valid_from
        self.valid_to = valid_to
        self.tracked = tracked
        self.current = current
        self.deleted = deleted
        self.effective = effective
        self.as_of = as_of
        self.hard_deletes = hard_deletes
        self.delete_marker = delete_marker
        self.late = late
        self.corrections = corrections
        self.open_end = open_end
        self.check_parameters()

    def statement(self) -> MergeSpec:
        """The MERGE of the rendered parameters."""
        return scd2_merge(self._versions())

    def request_sources(self) -> tuple[Source, ...]:
        """The given source, and the versions that are made of it."""
        return (*self._inner(self.source), self._versions())

    def _inner(self, source: Any) -> tuple[Source, ...]:
        """The given source; of change events, each of them."""
        inner = to_sources(source)
        events = inner[-1]
        if not isinstance(events, CdcSource):
            return inner
        for name in ("late", "deleted"):
            if name in source:
                raise invalid(
                    f"source.{name}",
                    "is for rows of which there is one for each key",
                    f"Leave it out, and set {name} of the operator.",
                )
        return (*inner[:-1], replace(events, net=False))

    def check_parameters(self) -> None:
        """Check what is known when the DAG is parsed.

        Raises:
            RequestError: names the parameter.
            NotSupportedError: the parameters contradict each other.
        """
        if self.target is None:
            raise invalid("target", "missing", "Name the table of versions: database.table.")
        if not is_template(self.target):
            self.announce_target(self.target_table())
        if not chosen_later(self.source):
            self.announce_read(to_sources(with_placeholders(self.source)))
        if not has_template([getattr(self, name) for name in self.template_fields]):
            self.check_request()
        elif not chosen_later(self.source) and not any(
            is_template(getattr(self, name)) for name in ("keys", "tracked", *_CHOICES)
        ):
            self._versions()

    def _versions(self) -> Scd2Source:
        """The source of versions; a placeholder stands for each template."""
        source = with_placeholders(self.source)
        inner = self._inner(source)
        names = {name: self._column(name) for name in _NAMES}
        document: dict[str, Any] = {
            "name": VERSIONS,
            "source": inner[-1].name,
            "keys": tuple(column_list(with_placeholders(self.keys), "keys")),
            "tracked": self._tracked(),
            **names,
            **{name: self._time(name) for name in _TIMES},
            "hard_deletes": self.hard_deletes,
            "late": self.late or self._usual_late(names, inner[-1]),
            "corrections": self.corrections,
            "of_events": is_cdc(source),
        }
        if document["delete_marker"] is None and reads_changes(source):
            document["delete_marker"] = CHANGE_TYPE
        versions = Scd2Source(**document)
        require_events(versions, inner)
        return versions

    def _usual_late(self, names: Mapping[str, str | None], source: Source) -> str:
        takes_over = isinstance(source, CdcSource) and source.unchanged
        return "fail" if names["effective"] is None or takes_over else "insert_between"

    def _column(self, name: str) -> str | None:
        given = with_placeholders(getattr(self, name))
        found = text(name, given)
        return f"{PLACEHOLDER}_{name}" if found == PLACEHOLDER else found and unquoted(found)

    def _tracked(self) -> tuple[str, ...] | None:
        tracked = with_placeholders(self.tracked)
        if isinstance(tracked, str) and tracked.lower() == _ALL:
            return None
        if isinstance(tracked, str) and tracked != PLACEHOLDER:
            problem = f"{tracked!r} is neither 'all' nor a list of columns"
            raise invalid("tracked", problem, "Write ['a', 'b'], or 'all'.")
        return tuple(column_list(tracked, "tracked"))

    def _time(self, name: str) -> str | None:
        given = with_placeholders(getattr(self, name))
        if isinstance(given, date):
            return given.isoformat()
        found = text(name, given)
        return _SOME_TIME if found and PLACEHOLDER in found else found
