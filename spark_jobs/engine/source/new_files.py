"""Chooses the files of a source that no commit of the task has applied. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from spark_jobs.contract.new_files import ALL, NOW, NewFiles
from spark_jobs.contract.result import SourceMetrics
from spark_jobs.contract.source_names import placed_source
from spark_jobs.engine.marks.applied_files import AppliedFiles
from spark_jobs.engine.marks.marks import Marks, NewMark, begun_before
from spark_jobs.engine.source.open_source import listed_source
from spark_jobs.engine.source.source_files import SourceFiles
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.request import FileSource
    from spark_jobs.landing.files import LandedFile
    from spark_jobs.spi.connector import Connector

_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class ChosenFiles:
    """The new files of a source that a run takes, oldest first, and how many more there are.

    ``mark``: that of the source once they are applied; None: it stays as it is.
    """

    files: SourceFiles
    mark: NewMark | None
    left_files: int = 0
    left_bytes: int = 0

    @property
    def told(self) -> str:
        """What a run takes, for its log."""
        count, size = len(self.files.files), self.files.byte_size
        rest = f"; {self.left_files:,} are left" if self.left_files else ""
        return f"{placed_source(self.files.source)}: {count:,} new files of {size:,} bytes{rest}"

    @property
    def metrics(self) -> SourceMetrics:
        """What there is to read."""
        return SourceMetrics(
            files=len(self.files.files),
            bytes=self.files.byte_size,
            left_files=self.left_files,
            left_bytes=self.left_bytes,
        )


def new_files_of(
    spark: SparkSession, source: FileSource, connector: Connector, marks: Marks, name: str
) -> ChosenFiles:
    """List the files of ``source``, and choose; raises as ``listed_source`` and ``chosen_files``.

    A folder without files has nothing new.
    """
    assert source.new_files is not None  # noqa: S101 - the caller looks
    listed = listed_source(spark, source, connector)
    return chosen_files(listed, source.new_files, marks, name)


def chosen_files(listed: SourceFiles, new_files: NewFiles, marks: Marks, name: str) -> ChosenFiles:
    """The files that are new since the mark ``name``, out of those that are ``listed``.

    Raises:
        CatalogError: SOURCE_REPLACED: files changed after they were applied.
        CommitError: MARK_LOST: it is not known, or "now" would leave files out.
        NotSupportedError: the store does not tell when files were modified.
        RequestError: REQUEST_INVALID: the mark is not one of files.
    """
    _require_versions(listed)
    last_mark, storage = marks.newest(name), marks.connector.storage
    if last_mark is None:
        _require_start(listed, new_files, marks, name)
        applied = AppliedFiles()
        before = [each for each in listed.files if not _is_after_start(each, new_files)]
    else:
        applied, before = AppliedFiles.read(storage, name, last_mark.document), []
    known = {each.path for each in before}
    new = [each for each in listed.files if each.path not in known and not applied.has(each)]
    if new_files.replaced == "fail":
        _refuse_replaced(listed, [each for each in new if applied.has_name(each)])
    taken = _taken(sorted(new, key=_age), new_files)
    left = len(new) - len(taken)
    chosen = replace(listed, files=tuple(taken))
    # A first run that takes nothing says what was there already, or that nothing was.
    begins = last_mark is None and new_files.start != ALL
    mark = _mark(applied.with_files([*before, *taken]), name, marks) if taken or begins else None
    left_bytes = sum(each.version.size for each in new) - chosen.byte_size
    return ChosenFiles(chosen, mark, left, left_bytes)


def _require_start(listed: SourceFiles, new_files: NewFiles, marks: Marks, name: str) -> None:
    """Refuse to begin at "now" for a second time: what landed in between would be left out."""
    if new_files.start == NOW and marks.has_begun(name):
        raise begun_before(placed_source(listed.source), marks)


def _mark(applied: AppliedFiles, name: str, marks: Marks) -> NewMark:
    storage = marks.connector.storage
    return NewMark(name, applied.document(), lambda: applied.store(storage, name))


def _is_after_start(file: LandedFile, new_files: NewFiles) -> bool:
    if new_files.start == NOW:
        return False
    start = new_files.start_ns
    return start is None or (file.version.modified or 0) >= start


def _age(file: LandedFile) -> tuple[int, str]:
    return file.version.modified or 0, file.path


def _taken(ordered: Sequence[LandedFile], limits: NewFiles) -> list[LandedFile]:
    """The first of these files, within the limits; always one, however large it is."""
    taken: list[LandedFile] = []
    size = 0
    for file in ordered[: limits.max_files]:
        size += file.version.size
        if taken and limits.max_bytes is not None and size > limits.max_bytes:
            break
        taken.append(file)
    return taken


def _require_versions(listed: SourceFiles) -> None:
    if any(each.version.modified is None for each in listed.files):
        raise NotSupportedError(
            f"{placed_source(listed.source)}: its store does not tell when files were modified, so "
            "new ones cannot be told from old ones.",
            "Land them on a local or shared folder, on s3:// or on hdfs://.",
        )


def _refuse_replaced(listed: SourceFiles, replaced: Sequence[LandedFile]) -> None:
    if not replaced:
        return
    named = ", ".join(sorted(each.name for each in replaced)[:_NAMED])
    more = f" and {len(replaced) - _NAMED:,} more" if len(replaced) > _NAMED else ""
    raise CatalogError(
        ErrorCode.SOURCE_REPLACED,
        f"{placed_source(listed.source)}: {named}{more} changed after the task had applied "
        f"{'it' if len(replaced) == 1 else 'them'}.",
        "Give new content a new name. With replaced='again', changed files are read again, whole.",
    )
