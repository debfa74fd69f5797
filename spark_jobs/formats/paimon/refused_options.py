"""Paimon's table options that are refused because they change what a table or statement means.

A ``*`` stands for any text. docs/paimon-options.md lists all options of Paimon, including these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal

from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError

# ``read``: for any use; ``write``: as a target; ``tag``: for statements that create or drop tags.
Use = Literal["read", "write", "tag"]

_OTHER_ENGINE: Final = "Run this statement with Paimon's own engines."
_UNSET: Final = "Unset the option, or run this statement with Paimon's own engines."


@dataclass(frozen=True, slots=True)
class Refusal:
    """An option that is refused for some uses of a table, unless its value is ``accepted``.

    ``reason`` continues a sentence that begins with the table's name. ``spares_keyed``: it does not
    concern tables with a primary key, which have values of their own.
    """

    uses: tuple[Use, ...]
    reason: str
    accepted: tuple[str, ...] = ("",)
    remedy: str = _UNSET
    spares_keyed: bool = False


_ANY: Final[tuple[Use, ...]] = ("read", "write", "tag")
_OTHER_ROWS: Final = "is not read at its latest snapshot"
_BLOB: Final = "has columns of the type BLOB"
_DEFAULTS: Final = "Use column defaults of Paimon 1.2 or later instead."


def _always(reason: str, *accepted: str, remedy: str = _OTHER_ENGINE) -> Refusal:
    return Refusal(_ANY, reason, accepted or ("",), remedy)


REFUSED: Final[Mapping[str, Refusal]] = {
    "type": _always("is not a data table of Paimon", "table"),
    "branch": _always("points to a branch", "main"),
    "file.format": _always(
        "has data files that are neither parquet nor ORC nor Avro", "parquet", "orc", "avro"
    ),
    "manifest.format": _always("has manifests that are not Avro", "avro"),
    "deletion-vectors.bitmap64": _always("has 64-bit deletion vectors", "false"),
    "query-auth.enabled": _always("restricts what each user may read", "false"),
    "chain-table.enabled": _always("is a chain table", "false"),
    "scan.fallback-branch": _always("falls back to a branch"),
    "scan.fallback-snapshot-branch": _always("falls back to a branch"),
    "scan.fallback-delta-branch": _always("falls back to a branch"),
    "scan.primary-branch": _always("falls back to a branch"),
    "fields.*.default-value": _always("replaces NULLs while reading", remedy=_DEFAULTS),
    "fields.*.map.storage-layout": _always("stores maps in another layout", "default"),
    "scan.mode": _always(_OTHER_ROWS, "default", "latest-full", "full", "latest"),
    "log.scan": _always(_OTHER_ROWS, "default", "latest-full", "full", "latest"),
    **dict.fromkeys(
        (
            "incremental-between",
            "incremental-between-timestamp",
            "incremental-to-auto-tag",
            "log.scan.timestamp-millis",
            "scan.creation-time-millis",
            "scan.file-creation-time-millis",
            "scan.snapshot-id",
            "scan.tag-name",
            "scan.timestamp",
            "scan.timestamp-millis",
            "scan.version",
            "scan.watermark",
        ),
        _always(_OTHER_ROWS),
    ),
    "scan.bucket": _always("is read only in part"),
    "scan.partitions": _always("is read only in part"),
    "batch-scan-mode": _always("is read for a compaction", "none"),
    "read.changelog": _always("is read as a changelog", "false"),
    "bucket-function.type": Refusal(
        ("write",), "puts rows into buckets by another function", ("default",)
    ),
    "changelog-file.format": Refusal(
        ("write",),
        "has changelog files that are neither parquet nor ORC nor Avro",
        ("parquet", "orc", "avro"),
    ),
    "changelog-producer": Refusal(
        ("write",), "keeps changelogs without a primary key", ("none",), spares_keyed=True
    ),
    "commit.callbacks": Refusal(("write",), "calls callbacks at every commit"),
    "commit.custom-listeners": Refusal(("write",), "calls listeners at every commit"),
    "commit.strict-mode.last-safe-snapshot": Refusal(
        ("write",), "refuses commits after certain other commits"
    ),
    "metadata.iceberg.storage": Refusal(
        ("write", "tag"),
        "keeps metadata for Iceberg readers, who would still see the old rows",
        ("disabled",),
    ),
    "metastore.partitioned-table": Refusal(
        ("write",), "lists its partitions in a metastore", ("false",)
    ),
    "metastore.tag-to-partition": Refusal(("tag",), "shows its tags as partitions in a metastore"),
    "metastore.tag-to-partition.preview": Refusal(
        ("write",), "shows its tags as partitions in a metastore", ("none",)
    ),
    "partition": Refusal(("write",), "names its partition keys in an option"),
    "partition.end-input-to-done": Refusal(
        ("write",), "marks partitions as done when they are written", ("false",)
    ),
    "partition.expiration-time": Refusal(
        ("write",),
        "drops old partitions when it is written",
        remedy="Unset the option, and drop old partitions with DropPartitionsOperator.",
    ),
    "primary-key": Refusal(("write",), "names its primary key in an option"),
    "rowkind.field": Refusal(("write",), "stores in a column whether a row is inserted or deleted"),
    "tag.automatic-creation": Refusal(
        ("write",),
        "creates tags when it is written",
        ("none",),
        "Unset the option, and create tags with CreateTagOperator.",
    ),
    "tag.callbacks": Refusal(("tag",), "calls callbacks for its tags"),
    "tag.create-success-file": Refusal(("tag",), "has a success file for each tag", ("false",)),
    "upsert-key": Refusal(("write",), "replaces rows of the same key when rows are inserted"),
    "vector-field": Refusal(("write",), "has columns of the type VECTOR"),
    "video-frame-field": Refusal(("write",), _BLOB),
    "write.hive-style-dynamic-partition.enabled": Refusal(
        ("write",), "takes the columns of inserted rows in Hive's order", ("false",)
    ),
    **dict.fromkeys(
        ("blob-descriptor-field", "blob-external-storage-field", "blob-field", "blob-view-field"),
        Refusal(("write",), _BLOB),
    ),
}


# Options that change what records of a table with a primary key mean, and their accepted values.
REFUSED_WITH_KEY: Final[Mapping[str, tuple[str, ...]]] = {
    "changelog-producer": ("none", "input", "lookup", "full-compaction"),
    "*ignore-delete": ("false",),
    "*ignore-update-before": ("false",),
    "*remove-record-on-delete": ("false",),
    "deletion-vectors.merge-on-read": ("false",),
    "fields.*.ignore-retract": ("false",),
    "fields.*.sequence-group": ("",),
    "file.format.per.level": ("",),
    "partial-update.remove-record-on-sequence-group": ("",),
    "pk-*.index.columns": ("",),
    "pk-clustering-override": ("false",),
    "postpone.merge-on-read": ("false",),
    "primary-key.nullable": ("false",),
    "record-level.expire-time": ("",),
    "sequence.snapshot-ordering": ("false",),
}


def refuse_options(
    name: TableName, primary_keys: Sequence[str], options: Mapping[str, str], use: Use
) -> None:
    """Refuse a table whose options rule out ``use``.

    Raises:
        NotSupportedError: names the option.
    """
    for problem in key_problems(options) if primary_keys else ():
        raise refusal_of_key(name, primary_keys, problem)
    for option, refusal in _refused(options, use):
        if refusal.spares_keyed and primary_keys:
            continue
        raise NotSupportedError(
            f"{name} {refusal.reason} (option {option} = {options[option]}), which is not "
            "supported.",
            refusal.remedy,
        )


def key_problems(options: Mapping[str, str]) -> Iterator[str]:
    """The options that are refused beside a primary key; each continues a sentence."""
    for option, value in options.items():
        for pattern, accepted in REFUSED_WITH_KEY.items():
            if fnmatchcase(option, pattern) and value.strip().lower() not in accepted:
                yield f"the option {option} = {value}"


def refusal_of_key(name: TableName, primary_keys: Sequence[str], problem: str) -> NotSupportedError:
    """The error of a table with a primary key that has ``problem``."""
    return NotSupportedError(
        f"{name} has a primary key ({', '.join(primary_keys)}) and {problem}, which is not "
        "supported.",
        _OTHER_ENGINE,
    )


def _refused(options: Mapping[str, str], use: Use) -> Iterator[tuple[str, Refusal]]:
    """The options of a table that rule out ``use``, each with its refusal."""
    for option, value in options.items():
        for pattern, refusal in REFUSED.items():
            fits = use in refusal.uses and fnmatchcase(option, pattern)
            if fits and value.strip().lower() not in refusal.accepted:
                yield option, refusal
