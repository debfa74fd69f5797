"""The lease of a run: the run's tasks may leave files only while it exists.

Spark reports a failed stage while its other tasks still write, and a Python worker can outlive its
task. So the driver removes the lease before it lists what a run has written, and a task checks the
lease after its last file. Either the driver lists a file, or the file's task finds the lease gone
and removes the file. Imported by executors: nothing here needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.contract.operation_files import lease_path
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.storage.files import remove_file, remove_folder, replace_file

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pafs

    from spark_jobs.spi.arrow_tasks import ArrowFunction
    from spark_jobs.spi.sinks import MergeSink, MergeSinkFactory
    from spark_jobs.spi.writes import Fragment


@dataclass(frozen=True, slots=True)
class Lease:
    """A file in ``scratch``, the folder of one run's temporary files. Picklable."""

    filesystem: pafs.FileSystem
    scratch: str

    @property
    def path(self) -> str:
        """The file."""
        return lease_path(self.scratch)

    def take(self) -> None:
        """Create the lease, so that the run's tasks may leave files.

        Raises:
            CommitError: RUN_GIVEN_UP; another try removed the folder at the same moment.
        """
        try:
            replace_file(self.filesystem, self.path, b"")
        except FileNotFoundError:
            raise _given_up() from None

    def end(self) -> None:
        """Remove the lease: from now on, tasks may leave no files."""
        remove_file(self.filesystem, self.path)

    def is_held(self) -> bool:
        """Whether the lease exists; it is opened, because NFS clients cache names."""
        try:
            self.filesystem.open_input_stream(self.path).close()
        except FileNotFoundError:
            return False
        return True

    def require(self) -> None:
        """Check that the lease exists.

        Raises:
            CommitError: RUN_GIVEN_UP.
        """
        if not self.is_held():
            raise _given_up()


@dataclass(frozen=True, slots=True)
class LeasedSinks:
    """Implements ``MergeSinkFactory``: the sinks of ``real``, which fail without the lease."""

    real: MergeSinkFactory
    lease: Lease

    def open(self, task_key: str) -> LeasedSink:
        """A sink for one attempt of a task."""
        return LeasedSink(self.real.open(task_key), self.lease)


@dataclass(frozen=True, slots=True)
class LeasedSink:
    """Implements ``MergeSink``; whoever opened it aborts it when it fails."""

    real: MergeSink
    lease: Lease

    def store_merged_rows(self, batch: pa.RecordBatch) -> None:
        """Take change rows."""
        self.real.store_merged_rows(batch)

    def finish(self) -> list[Fragment]:
        """Finish, and return what was written.

        Raises:
            CommitError: RUN_GIVEN_UP.
        """
        self.lease.require()
        fragments = self.real.finish()
        self.lease.require()
        return fragments

    def abort(self) -> None:
        """Remove what this task wrote."""
        self.real.abort()

    def read_row(self, row_id: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        """Values of one target row."""
        return self.real.read_row(row_id, columns)


@dataclass(frozen=True, slots=True)
class LeasedTask:
    """A function for ``mapInArrow`` that runs ``function`` and leaves no files without the lease.

    ``function`` writes only into ``folder``, which is useless without the run. Picklable.
    """

    function: ArrowFunction
    lease: Lease
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What ``function`` yields for the batches of one task."""
        try:
            yield from self.function(batches)
        finally:
            if not self.lease.is_held():
                remove_folder(self.lease.filesystem, self.folder)


def _given_up() -> CommitError:
    return CommitError(
        ErrorCode.RUN_GIVEN_UP,
        "The run was given up before it was published: it failed, its task was ended, or "
        "another try of the task has begun.",
        "Look at the job's other errors and at the task's other tries.",
    )
