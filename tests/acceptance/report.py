"""What a run of the acceptance cases is told as: lines for people, JSON for programs."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_jobs.errors import ErrorCode
from tests.acceptance.cases import CATEGORIES, EVOLUTION, POLICY
from tests.acceptance.running import NOT_SUPPORTED, Verdict
from tests.support.table_kinds import KINDS

# Errors of values, and of types, that are not stored.
_NOT_STORED = (ErrorCode.VALUE_NOT_STORABLE.name, ErrorCode.TYPE_MISMATCH.name)
_REFUSED = Path(__file__).with_name("refused.toml")


@dataclass(frozen=True)
class Entry:
    """A verdict after refusals that are listed are taken into account.

    ``outcome``: ``passed``, ``unchecked`` (no more was found than that it succeeds or fails, as it
    shall), ``refused`` (listed, with the reason, or for its ``storeAssignmentPolicy`` or its
    ``nested_missing_fields``) or ``failed``.
    """

    kind: str
    verdict: Verdict
    outcome: str
    text: str

    @classmethod
    def of(cls, kind: str, verdict: Verdict, refused: Mapping[str, str]) -> Entry:
        """The entry of a verdict; ``refused``: reasons by case id."""
        reason = refused.get(verdict.attempt.case.id)
        if reason is None and verdict.difference:
            rule = _policy_reason(verdict) or _other_rule(verdict) or _kind_reason(kind, verdict)
            return cls(kind, verdict, "refused" if rule else "failed", rule or verdict.difference)
        if reason is None:
            unchecked = verdict.attempt.unchecked
            return cls(kind, verdict, "unchecked" if unchecked else "passed", unchecked)
        if verdict.code == NOT_SUPPORTED:
            return cls(kind, verdict, "refused", reason)
        return cls(kind, verdict, "failed", "is listed as refused, but is not")

    def line(self) -> str:
        """A line about what did not pass."""
        outcome = self.outcome.upper()
        return f"{outcome} {self.kind} {self.verdict.attempt.label}: {' '.join(self.text.split())}"

    def document(self) -> dict[str, Any]:
        """The entry for programs."""
        attempt = self.verdict.attempt
        return {
            "id": attempt.case.id,
            "tables": self.kind,
            "cardinality": attempt.cardinality,
            "outcome": self.outcome,
            "text": self.text,
            "error": self.verdict.code,
            "seconds": round(self.verdict.seconds, 3),
        }


def _policy_reason(verdict: Verdict) -> str:
    """Why a case differs that wants another policy than ANSI; empty if that is not what differs.

    Strict casts differ by errors alone: of a kind that is no other one's, where ANSI casts store
    the value. Legacy casts store NULL, or what is left of a number, where ANSI casts fail.
    """
    case, category = verdict.attempt.case, verdict.attempt.expected.category
    policy = case.settings.get(POLICY)
    if policy == "strict":
        expects_its_error = category is not None and category not in CATEGORIES
        if expects_its_error and verdict.is_judged and verdict.code is None:
            return f"{POLICY} = strict: ANSI casts, which are always used, store the value"
    # What has changed is told before the error.
    is_error_alone = verdict.difference.startswith(f"{verdict.code}: ")
    if policy == "legacy" and category is None and verdict.code in _NOT_STORED and is_error_alone:
        return f"{POLICY} = legacy: ANSI casts, which are always used, refuse the value"
    return ""


def _other_rule(verdict: Verdict) -> str:
    """Why a case has other rows that wants a field that the source lacks to become NULL."""
    is_other = verdict.attempt.case.nested_missing_fields == "null" and verdict.code is None
    if is_other and verdict.difference.startswith(("missing", "unexpected")):
        return "nested_missing_fields = null: such a field keeps its value here"
    return ""


def _kind_reason(kind: str, verdict: Verdict) -> str:
    """Why tables of a kind refuse a case; empty if that is not what differs."""
    if verdict.code != NOT_SUPPORTED:
        return ""
    if kind not in KINDS:
        evolves = verdict.attempt.case.settings.get(EVOLUTION)
        return "Iceberg: columns are not added by a statement" if evolves else ""
    statement = verdict.attempt.case.statement.lower()
    if not KINDS[kind].deletes_rows and "delete" in statement:
        return "data evolution without deletion vectors: no row is deleted"
    if "an update of its partition column" in verdict.difference:
        return "data evolution: rows stay in their partition"
    return ""


def read_refused(kind: str) -> dict[str, str]:
    """Reasons by case id for one kind of table."""
    return tomllib.loads(_REFUSED.read_text(encoding="utf-8")).get(kind, {})


def last_line(entries: Sequence[Entry], seconds: float) -> str:
    """The counts of a run."""
    counts = Counter(entry.outcome for entry in entries)
    cases = len({entry.verdict.attempt.case.id for entry in entries})
    kinds = ", ".join(dict.fromkeys(entry.kind for entry in entries))
    unchecked = f", {counts['unchecked']} unchecked" if counts["unchecked"] else ""
    return (
        f"{counts['passed']} passed, {counts['refused']} refused, {counts['failed']} failed"
        f"{unchecked}: "
        f"{len(entries)} runs of {cases} cases on {kinds} in {seconds:.0f} s"
    )


def write_report(path: Path, entries: Sequence[Entry], seconds: float) -> None:
    """Store all entries as JSON."""
    counts = Counter(entry.outcome for entry in entries)
    document = {
        "counts": {name: counts[name] for name in ("passed", "unchecked", "refused", "failed")},
        "seconds": round(seconds, 1),
        "runs": [entry.document() for entry in entries],
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
