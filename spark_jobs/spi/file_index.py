"""What Spark has found where it was told to read files. Driver only.

Hadoop leaves out what it cannot see, and Spark what it takes for metadata, without a word: whoever
gives files to Spark compares their number and bytes with what Spark has in its list.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# No name of a file contains it.
_SEPARATOR: Final = "\0"


@dataclass(frozen=True, slots=True)
class FileIndex:
    """The file index of a frame that is nothing but a reader's, with all files of Spark's scans.

    Its paths are those of Hadoop, such as ``file:/a b``, without any escaping.
    """

    index: Any

    @classmethod
    def of(cls, frame: DataFrame) -> FileIndex:
        """The index of ``frame``, which Spark's reader of a file format has made."""
        # Spark itself puts a projection above files of which it knows that they hold CHAR.
        leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
        return cls(leaves.head().relation().location())

    @classmethod
    def all_of(cls, frame: DataFrame) -> list[FileIndex]:
        """The indexes of all files that a query reads with Spark's readers."""
        query = frame._jdf.queryExecution().analyzed()
        plans = [query, *_elements(query.subqueriesAll())]
        leaves = [leaf for plan in plans for leaf in _elements(plan.collectLeaves())]
        relations = [leaf.relation() for leaf in leaves if _class(leaf) == "LogicalRelation"]
        return [cls(each.location()) for each in relations if _class(each) == "HadoopFsRelation"]

    @property
    def is_listed(self) -> bool:
        """Whether Spark has listed folders; otherwise a log or a catalog has told it the files."""
        return _class(self.index) == "InMemoryFileIndex"

    @property
    def file_count(self) -> int:
        """The number of files that a scan of all partitions reads."""
        return len(self.index.inputFiles())

    @property
    def byte_size(self) -> int:
        """Bytes of these files, as they were when Spark listed them."""
        return int(self.index.sizeInBytes())

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes of each of these files; takes a millisecond for each."""
        files = _elements(self.index.allFiles())
        return {str(each.getPath().toString()): int(each.getLen()) for each in files}

    @property
    def roots(self) -> list[str]:
        """The files and folders that were listed, after patterns have been replaced by them."""
        return _texts(self.index.rootPaths())

    @property
    def leaves(self) -> Collection[str]:
        """All files below the roots, whatever a scan reads of them."""
        return frozenset(_texts(self.index.leafFiles().keys().toSeq()))


def _elements(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _class(object_: Any) -> str:
    return str(object_.getClass().getSimpleName())


def _texts(paths: Any) -> list[str]:
    """A Scala sequence in one call; Py4J would make one call per element."""
    text: str = paths.mkString(_SEPARATOR)
    return text.split(_SEPARATOR) if text else []
