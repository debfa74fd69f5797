"""Steps of a table's history through Iceberg's own library, by name; run beside its JVM.

Unless a step says otherwise, files have ten bytes of anything: no step reads rows.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError

_SIZE: Final = 10


class IcebergSteps:
    """Changes one table; ``gateway`` leads to the JVM, ``table`` is Iceberg's."""

    def __init__(self, gateway: Any, table: Any) -> None:
        self._gateway = gateway
        self._java = gateway.jvm
        self._iceberg = self._java.org.apache.iceberg
        self._table = table

    def append(self, branch: str) -> None:
        """Add a file to a branch, which begins with it if there is none; none to a tag."""
        reference = self._table.refs().get(branch)
        if reference is not None and reference.isTag():
            return
        self._table.newAppend().appendFile(self._data()).toBranch(branch).commit()

    def stage(self, wap_id: str) -> None:
        """Add a file in a snapshot that is on no branch."""
        append = self._table.newAppend().appendFile(self._data())
        append.set("wap.id", wap_id)
        append.stageOnly().commit()

    def overwrite(self, branch: str, seed: int) -> None:
        """Replace one of a branch's files by another one."""
        files = self._live(branch)
        change = self._table.newOverwrite().addFile(self._data()).toBranch(branch)
        if files:
            change.deleteFile(files[seed % len(files)])
        change.commit()

    def rewrite(self, seed: int) -> None:
        """Replace up to three files of the main branch by one with the same rows."""
        files = self._live("main")
        some = files[seed % max(len(files), 1) :][:3]
        if some:
            rewrite = self._table.newRewrite()
            rewrite.validateFromSnapshot(self._table.currentSnapshot().snapshotId())
            for each in some:
                rewrite.deleteFile(each)
            rewrite.addFile(self._data()).commit()

    def remove(self, seed: int) -> None:
        """Remove one of the main branch's files."""
        files = self._live("main")
        if files:
            self._table.newDelete().deleteFile(files[seed % len(files)]).commit()

    def mark(self, kind: str, seed: int) -> None:
        """Add a file of position or equality deletes."""
        path = self._new_file("deletes")
        builder = self._iceberg.FileMetadata.deleteFileBuilder(self._spec())
        if kind == "equality":
            columns = self._gateway.new_array(self._java.int, 1)
            columns[0] = 1
            builder = builder.ofEqualityDeletes(columns)
        else:
            builder = builder.ofPositionDeletes()
        file = builder.withPath(path).withFormat("parquet").withFileSizeInBytes(_SIZE)
        file = file.withRecordCount(1)
        if self._spec().isPartitioned():
            file = file.withPartitionPath(self._partition(seed % 2))
        self._table.newRowDelta().addDeletes(file.build()).commit()

    def delete_by_value(self, column: str, value: int) -> None:
        """Delete the rows with a value by a real file of equality deletes; of no partition."""
        wanted = self._java.java.util.ArrayList()
        wanted.add(column)
        schema = self._table.schema().select(wanted)
        ids = self._gateway.new_array(self._java.int, 1)
        ids[0] = self._table.schema().findField(column).fieldId()
        location = f"{self._table.location()}/data/equality-{uuid.uuid4()}.parquet"
        output = self._iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(
            self._table.io().newOutputFile(location)
        )
        factory = getattr(self._iceberg.data, "GenericFileWriterFactory$Builder")(self._table)
        factory = factory.equalityDeleteRowSchema(schema).equalityFieldIds(ids).build()
        writer = factory.newEqualityDeleteWriter(output, self._spec(), None)
        record = self._iceberg.data.GenericRecord.create(schema)
        record.setField(column, value)
        writer.write(record)
        writer.close()
        self._table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()

    def delete_values(self, columns: list[str], values: str, count: int) -> None:
        """Delete rows by copies of a file of ``values``, one for each partition with files."""
        numbers = [self._table.schema().findField(each).fieldId() for each in columns]
        ids = self._gateway.new_array(self._java.int, len(numbers))
        for place, number in enumerate(numbers):
            ids[place] = number
        change = self._table.newRowDelta()
        partitions = {f"{each.specId()} {each.partition()}": each for each in self._live("main")}
        for file in partitions.values():
            spec = self._table.specs().get(file.specId())
            copy = Path(values).with_name(f"{uuid.uuid4()}.parquet")
            copy.hardlink_to(values)
            builder = self._iceberg.FileMetadata.deleteFileBuilder(spec).ofEqualityDeletes(ids)
            builder = builder.withPath(f"file:{copy}").withFormat("parquet")
            builder = builder.withFileSizeInBytes(copy.stat().st_size).withRecordCount(count)
            if spec.isPartitioned():
                builder = builder.withPartition(file.partition())
            change.addDeletes(builder.build())
        change.commit()

    def spec(self) -> None:
        """Partition new files by the second column, or no longer."""
        change = self._table.updateSpec()
        if self._spec().isPartitioned():
            change.removeField(self._spec().fields().get(0).name())
        else:
            change.addField("p")
        change.commit()

    def column(self) -> None:
        """Add a column, or drop the one that was added."""
        change = self._table.updateSchema()
        if self._table.schema().findField("more") is None:
            text = getattr(self._iceberg.types, "Types$StringType").get()
            change.addColumn("more", text).commit()
        else:
            change.deleteColumn("more").commit()

    def statistics(self, seed: int) -> None:
        """Describe a snapshot by a file of statistics and one about partitions."""
        snapshot = self._snapshot(seed)
        if snapshot is None:
            return
        none = self._java.java.util.ArrayList()
        file = self._iceberg.GenericStatisticsFile(
            snapshot, self._new_file("metadata", "stats"), _SIZE, 1, none
        )
        self._table.updateStatistics().setStatistics(file).commit()
        partitions = self._iceberg.ImmutableGenericPartitionStatisticsFile.builder()
        partitions.snapshotId(snapshot).path(self._new_file("metadata", "partitions"))
        partitions.fileSizeInBytes(_SIZE)
        self._table.updatePartitionStatistics().setPartitionStatistics(partitions.build()).commit()

    def tag(self, name: str, seed: int, age: int | None) -> None:
        """Tag a snapshot."""
        snapshot = self._snapshot(seed)
        if snapshot is not None and name not in self._refs():
            manage = self._table.manageSnapshots().createTag(name, snapshot)
            if age is not None:
                manage.setMaxRefAgeMs(name, age)
            manage.commit()

    def branch(
        self, name: str, seed: int, age: int | None, least: int | None, ref_age: int | None
    ) -> None:
        """Begin a branch at a snapshot."""
        snapshot = self._snapshot(seed)
        if snapshot is not None and name not in self._refs():
            manage = self._table.manageSnapshots().createBranch(name, snapshot)
            if age is not None:
                manage.setMaxSnapshotAgeMs(name, age)
            if least is not None:
                manage.setMinSnapshotsToKeep(name, least)
            if ref_age is not None:
                manage.setMaxRefAgeMs(name, ref_age)
            manage.commit()

    def drop(self, name: str) -> None:
        """Remove a tag or branch."""
        reference = self._table.refs().get(name)
        if reference is not None:
            manage = self._table.manageSnapshots()
            (manage.removeTag if reference.isTag() else manage.removeBranch)(name).commit()

    def current(self, seed: int) -> None:
        """Move the main branch to any snapshot."""
        snapshot = self._snapshot(seed)
        if snapshot is not None:
            self._table.manageSnapshots().setCurrentSnapshot(snapshot).commit()

    def cherry_pick(self, seed: int) -> None:
        """Publish a staged snapshot that is not in the main branch."""
        staged = [
            each.snapshotId()
            for each in self._snapshots()
            if each.summary().get("wap.id") is not None and not self._is_published(each)
        ]
        if staged and self._table.currentSnapshot() is not None:
            chosen = staged[seed % len(staged)]
            # Iceberg refuses one that a branch has moved to.
            with suppress(Py4JJavaError):
                self._table.manageSnapshots().cherrypick(chosen).commit()

    def _is_published(self, staged: Any) -> bool:
        name = staged.summary().get("wap.id")
        published = {each.summary().get("published-wap-id") for each in self._snapshots()}
        return name in published

    def _refs(self) -> list[str]:
        return list(self._table.refs().keySet())

    def _snapshot(self, seed: int) -> int | None:
        known = [each.snapshotId() for each in self._snapshots()]
        return known[seed % len(known)] if known else None

    def _snapshots(self) -> list[Any]:
        return list(self._java.java.util.ArrayList(self._table.snapshots()))

    def _spec(self) -> Any:
        return self._table.spec()

    def _live(self, branch: str) -> list[Any]:
        if branch not in self._refs():
            return []
        tasks, found = self._table.newScan().useRef(branch).planFiles(), {}
        each = tasks.iterator()
        while each.hasNext():
            file = each.next().file()
            found[file.location()] = file
        tasks.close()
        return [found[path] for path in sorted(found)]

    def _data(self) -> Any:
        file = self._iceberg.DataFiles.builder(self._spec()).withPath(self._new_file("data"))
        file = file.withFormat("parquet").withFileSizeInBytes(_SIZE).withRecordCount(1)
        if self._spec().isPartitioned():
            file = file.withPartitionPath(self._partition(1))
        return file.build()

    def _partition(self, value: int) -> str:
        """A path; a field that is gone stays in specs of version 1, without a value."""
        parts = []
        for field in self._java.java.util.ArrayList(self._spec().fields()):
            is_gone = str(field.transform()) == "void"
            parts.append(f"{field.name()}={'__HIVE_DEFAULT_PARTITION__' if is_gone else value}")
        return "/".join(parts)

    def _new_file(self, folder: str, ending: str = "parquet") -> str:
        location = f"{self._table.location()}/{folder}/{uuid.uuid4()}.{ending}"
        path = Path(location.removeprefix("file:"))
        path = Path("/" + str(path).lstrip("/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"0" * _SIZE)
        return location
