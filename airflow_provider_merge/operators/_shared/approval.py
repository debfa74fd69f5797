"""The parameter ``approved``: the real run does what a dry run foretold, or nothing."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.guards import GuardedOperator
from airflow_provider_merge.operators._shared.inlets import announce_sources
from airflow_provider_merge.operators._shared.values import flag
from airflow_provider_merge.templates import is_template
from spark_jobs.contract import codec
from spark_jobs.contract.approval import Ticket, require_approvable
from spark_jobs.contract.request import Source
from spark_jobs.errors import RequestError

APPROVED: Final = "approved"
# The dry run that ends with its plan.
PLAN: Final = "plan"
_REMEDY: Final = "Write approved=\"{{ ti.xcom_pull('preview') }}\", with the task of the dry run."
NOTHING_APPROVED: Final = (
    "Look why the task of the dry run returned no ticket: it was skipped, or has not run. Without "
    "this parameter, the statement would run without approval."
)


class ApprovableOperator(GuardedOperator):
    """Can be told to do exactly what a dry run foretold.

    :param dry_run: true: report what would change, with the status ``dry_run``; store nothing, and
        send no asset event. ``"plan"``: report bounds of it alone, without writing anything
    :param approved: the XCom of the task with ``dry_run``: if statement, sources, or what the
        statement reads of the table are others by now, the task ends with APPROVAL_STALE
    """

    template_fields: Sequence[str] = (*GuardedOperator.template_fields, APPROVED)
    document_parameters: ClassVar[frozenset[str]] = frozenset({APPROVED})
    remedies: ClassVar[Mapping[str, str]] = {APPROVED: NOTHING_APPROVED}

    def __init__(self, *, approved: Mapping[str, Any] | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.approved = approved
        if approved is not None and not is_template(approved):
            self.approval()

    def is_dry_run(self) -> bool:
        """Whether ``dry_run`` is true, or ``plan``, from rendered parameters."""
        return self.plans_only() or flag("dry_run", cast("bool | str", self.dry_run), PLAN)

    def plans_only(self) -> bool:
        """Whether ``dry_run`` is ``plan``: bounds by metadata and the source, in seconds."""
        value: object = self.dry_run
        return isinstance(value, str) and value.strip().lower() == PLAN

    def announce_read(self, sources: Sequence[Source]) -> None:
        """Make the tables among the known sources inlets, if they can be approved.

        Raises:
            NotSupportedError: names the source that an approved task cannot read.
        """
        if self.approved is not None:
            require_approvable(sources)
        announce_sources(self, sources)

    def approval(self) -> Ticket | None:
        """The ticket, from rendered parameters; None: the task needs none.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        return ticket_in(self.approved)


def ticket_in(approved: Mapping[str, Any] | str | None) -> Ticket | None:
    """The ticket in the rendered parameter ``approved``; None: there is none.

    Raises:
        RequestError: REQUEST_INVALID, naming the parameter.
    """
    if approved is None:
        return None
    found = _document(approved)
    ticket = found.get("ticket", found) if isinstance(found, Mapping) else None
    if not isinstance(ticket, Mapping) or "digests" not in ticket:
        raise invalid(APPROVED, "is not the result of a dry run", _REMEDY)
    try:
        return codec.decode(Ticket, ticket, APPROVED)
    except RequestError as error:
        problem = f"is not a ticket of this release: {error.message}"
        raise invalid(APPROVED, problem, _REMEDY) from None


def _document(value: Any) -> Any:
    """What a template rendered: the text of a dict, or of a JSON document."""
    if not isinstance(value, str):
        return value
    for read in (json.loads, ast.literal_eval):
        try:
            return read(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None
