"""The set of files that a mark stands for: in immutable parts, kept in the workspace.

A part has 24 bytes for each file: a hash of its name and one of its version. Like the runs of an
LSM tree (O'Neil et al., 1996), parts are merged so that each is at least twice as large as the
next: a mark names at most as many parts as its number of files has binary digits, and each run
writes little. A part is named by the hash of its content, so writing it again changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.contract import codec
from spark_jobs.contract.operation_files import mark_document_path
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.storage.files import read_file, replace_file

if TYPE_CHECKING:
    from spark_jobs.landing.files import LandedFile
    from spark_jobs.spi.storage import WarehouseStorage

KIND: Final = "files"
_VERSION: Final = 1
_NAME_BYTES: Final = 16
_ENTRY_BYTES: Final = 24
_DIGITS: Final = 32

_Entries = Mapping[bytes, bytes]


@dataclass(frozen=True)
class Part:
    """Some of the files: ``entries`` maps hashes of names to those of versions."""

    entries: _Entries

    @cached_property
    def content(self) -> bytes:
        """The part as it is stored."""
        return b"".join(name + self.entries[name] for name in sorted(self.entries))

    @cached_property
    def digest(self) -> str:
        """The hash of the content, which names it."""
        return _digest(self.content)

    @classmethod
    def of(cls, content: bytes) -> Part:
        """The part in what ``content`` made."""
        starts = range(0, len(content), _ENTRY_BYTES)
        cut = (content[i : i + _ENTRY_BYTES] for i in starts)
        return cls({each[:_NAME_BYTES]: each[_NAME_BYTES:] for each in cut})

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, slots=True)
class AppliedFiles:
    """Files by name and version, in parts, oldest first; a name counts as its newest part has it.

    ``stored`` are the digests of the parts that are in the workspace already.
    """

    parts: tuple[Part, ...] = ()
    stored: frozenset[str] = frozenset()
    _known: dict[bytes, bytes] = field(default_factory=dict)

    @classmethod
    def read(
        cls, storage: WarehouseStorage, name: str, document: Mapping[str, Any]
    ) -> AppliedFiles:
        """The files of a mark.

        Raises:
            CommitError: MARK_LOST: a part is not there, or is not what was stored.
            RequestError: REQUEST_INVALID: the mark is of another kind or version.
        """
        if (document.get("kind"), document.get("version")) != (KIND, _VERSION):
            raise codec.invalid(name, "the mark is not one of files, or of a later release")
        digests = [str(each) for each in document["parts"]]
        parts = tuple(Part.of(_content(storage, name, each)) for each in digests)
        return cls(parts, frozenset(digests)).with_lookup()

    def with_lookup(self) -> AppliedFiles:
        """The same files, looked up by name."""
        known: dict[bytes, bytes] = {}
        for part in self.parts:
            known.update(part.entries)
        return AppliedFiles(self.parts, self.stored, known)

    def __len__(self) -> int:
        return len(self._known)

    def has_name(self, file: LandedFile) -> bool:
        """Whether a file of this name was applied, in whatever version."""
        return _name(file) in self._known

    def has(self, file: LandedFile) -> bool:
        """Whether the file was applied, in this version."""
        return self._known.get(_name(file)) == _version(file)

    def with_files(self, files: Iterable[LandedFile]) -> AppliedFiles:
        """These and others, in as few parts as the sizes allow."""
        new = {_name(each): _version(each) for each in files}
        if not new:
            return self
        parts = list(self.parts)
        while parts and len(parts[-1]) < 2 * len(new):
            new = {**parts.pop().entries, **new}
        return AppliedFiles((*parts, Part(new)), self.stored).with_lookup()

    def document(self) -> dict[str, Any]:
        """The mark that stands for these files."""
        digests = [each.digest for each in self.parts]
        return {"kind": KIND, "version": _VERSION, "files": len(self), "parts": digests}

    def store(self, storage: WarehouseStorage, name: str) -> None:
        """Store the parts that are not stored yet, for the mark ``name``.

        Raises:
            OSError: the storage refused.
        """
        for part in self.parts:
            if part.digest not in self.stored:
                path = _path(storage, name, part.digest)
                replace_file(storage.filesystem, path, part.content)


def _content(storage: WarehouseStorage, name: str, digest: str) -> bytes:
    path = _path(storage, name, digest)
    try:
        content = read_file(storage.filesystem, path)
    except FileNotFoundError:
        raise _lost(path, "is not there") from None
    if _digest(content) != digest:
        raise _lost(path, "is damaged")
    return content


def _lost(path: str, problem: str) -> CommitError:
    return CommitError(
        ErrorCode.MARK_LOST,
        f"{path} {problem}: it lists files that the task has applied.",
        "Restore it; after a change of the workspace, copy the folder _marks to the new one. If it "
        "is gone, rename the source or the task, which begins a new mark, and set its start.",
    )


def _path(storage: WarehouseStorage, name: str, digest: str) -> str:
    return f"{storage.root}/{mark_document_path(name, digest)}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def _name(file: LandedFile) -> bytes:
    # Not the URI: schemes such as s3 and s3a are names of the same file.
    return hashlib.sha256(file.path.encode(errors="surrogateescape")).digest()[:_NAME_BYTES]


def _version(file: LandedFile) -> bytes:
    text = f"{file.version.size} {file.version.modified}"
    return hashlib.sha256(text.encode()).digest()[: _ENTRY_BYTES - _NAME_BYTES]
