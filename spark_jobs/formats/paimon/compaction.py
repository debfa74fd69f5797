"""When files of a Paimon table are worth compacting: what is asked for, the table's options, or
Paimon's defaults (``CoreOptions``). Sensors count with the thresholds that the job compacts with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import TableName
from spark_jobs.contract.sizes import parse_size, parse_size_option
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.whole_numbers import whole_number

TARGET_FILE_SIZE: Final = "target-file-size"
MIN_FILES: Final = "compaction.min.file-num"
SMALL_FILE_SHARE: Final = "compaction.small-file-ratio"
DELETED_SHARE: Final = "compaction.delete-ratio-threshold"
SORTED_RUNS: Final = "num-sorted-run.compaction-trigger"
LEVELS: Final = "num-levels"
_BUCKETS: Final = "bucket"
_UNAWARE: Final = "-1"
_EVOLVES_COLUMNS: Final = "data-evolution.enabled"
_APPEND_TARGET: Final = 256 * 2**20
_KEYED_TARGET: Final = 128 * 2**20
_TRIGGER: Final = 5
_REMEDY: Final = "Correct the table's option."


@dataclass(frozen=True, slots=True)
class CompactionThresholds:
    """The fields of ``CompactSpec`` with their values; ``target_file_size`` is in bytes."""

    target_file_size: int
    min_files: int
    small_file_share: float
    deleted_share: float
    sorted_runs: int

    @classmethod
    def of(
        cls, spec: CompactSpec, options: Mapping[str, str], *, has_primary_key: bool
    ) -> CompactionThresholds:
        """What ``spec`` asks for; where it does not, the table's options or Paimon's defaults.

        Raises:
            NotSupportedError: an option of the table that is needed has an invalid value.
        """
        default = _KEYED_TARGET if has_primary_key else _APPEND_TARGET
        target = spec.target_file_size
        share, deleted = spec.small_file_share, spec.deleted_share
        return cls(
            _target_size(options, default) if target is None else parse_size(target),
            spec.min_files or whole_number(options, MIN_FILES, 5, least=0),
            _share(options, SMALL_FILE_SHARE, 0.7) if share is None else share,
            _share(options, DELETED_SHARE, 0.2) if deleted is None else deleted,
            spec.sorted_runs or whole_number(options, SORTED_RUNS, _TRIGGER, least=0),
        )

    def is_small(self, size: int) -> bool:
        """Whether a file of so many bytes is small."""
        return size < self.target_file_size * self.small_file_share


def refuse_uncompactable(name: TableName, options: Mapping[str, str]) -> None:
    """Refuse tables that only Paimon's own engines compact.

    Raises:
        NotSupportedError: the table has data evolution.
    """
    if options.get(_EVOLVES_COLUMNS, "").strip().lower() == "true":
        raise NotSupportedError(
            f"{name} stores columns apart (option {_EVOLVES_COLUMNS}): compacting it, so that rows "
            "keep their ids, is not supported.",
            "Compact it with Paimon's own engines.",
        )


def refuse_unsortable(
    name: TableName, spec: CompactSpec, primary_keys: Sequence[str], options: Mapping[str, str]
) -> None:
    """Refuse to sort the rows of a table that has an order of its own.

    Raises:
        NotSupportedError: it has a primary key, or fixed buckets.
    """
    if spec.asked_order is None:
        return
    parameter, _ = spec.asked_order
    if primary_keys:
        reason = f"has a primary key ({', '.join(primary_keys)}), by which its files are sorted"
    elif options.get(_BUCKETS, _UNAWARE).strip() != _UNAWARE:
        reason = "has fixed buckets, whose rows stay in the order in which they came"
    else:
        return
    raise NotSupportedError(f"{parameter}: {name} {reason}.", f"Leave {parameter} out.")


def refuse_manifests(name: TableName, spec: CompactSpec) -> None:
    """Refuse to rewrite manifests.

    Raises:
        NotSupportedError: ``spec`` asks for it.
    """
    if spec.manifests != "keep":
        raise manifests_refusal(name)


def refuse_deletes(name: TableName, spec: CompactSpec) -> None:
    """Refuse to rewrite files of deletes alone.

    Raises:
        NotSupportedError: ``spec`` asks for it.
    """
    if spec.mode == "deletes":
        raise NotSupportedError(
            f"{name} is a Paimon table, which has one deletion vector for each data file: there is "
            "none to put together.",
            "Use mode minor or full.",
        )


def manifests_refusal(name: TableName) -> NotSupportedError:
    """Why the manifests of a table are not rewritten."""
    return NotSupportedError(
        f"{name} is a Paimon table, whose manifests each commit merges by its options: there is "
        "none to rewrite.",
        "Leave manifests out.",
    )


def highest_level(options: Mapping[str, str]) -> int:
    """The last level of the buckets of a table with a primary key.

    Raises:
        NotSupportedError: an option has an invalid value.
    """
    runs = whole_number(options, SORTED_RUNS, _TRIGGER, least=0)
    return whole_number(options, LEVELS, runs + 1, least=0) - 1


def size_option(options: Mapping[str, str], name: str, default: int) -> int:
    """The bytes that the option ``name`` says.

    Raises:
        NotSupportedError: its value is not a size.
    """
    text = options.get(name)
    try:
        return default if text is None else parse_size_option(text)
    except ValueError as error:
        raise NotSupportedError(f"Option {name}: {error}.", _REMEDY) from None


def _target_size(options: Mapping[str, str], default: int) -> int:
    size = size_option(options, TARGET_FILE_SIZE, default)
    if size <= 0:
        text = options[TARGET_FILE_SIZE]
        raise NotSupportedError(f"Option {TARGET_FILE_SIZE} = {text} is not positive.", _REMEDY)
    return size


def _share(options: Mapping[str, str], name: str, default: float) -> float:
    text = options.get(name)
    try:
        share = default if text is None else float(text)
    except ValueError:
        share = math.nan
    if not share >= 0:
        raise NotSupportedError(f"Option {name} = {text} is not a share such as 0.7.", _REMEDY)
    return share
