"""How large marks and listings become: chains of runs over many landed files, without Spark.

First the mark alone, over files that are only named; then runs that list a folder, choose their
share, and commit a row for each file with the mark, as jobs do. Run:
``.venv-spark/bin/python -m benchmarks.new_files [--files 100000] [--runs 1000]
[--committed-files 20000] [--committed-runs 100]``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow.fs as pafs

from spark_jobs.contract.marks import PREFIX, mark_text
from spark_jobs.contract.new_files import NewFiles
from spark_jobs.contract.request import FileSource
from spark_jobs.engine.marks.applied_files import AppliedFiles
from spark_jobs.engine.marks.marks import Marks
from spark_jobs.engine.source.new_files import chosen_files
from spark_jobs.engine.source.source_files import SourceFiles
from spark_jobs.landing.files import FileVersion, LandedFile
from spark_jobs.spi.storage import WarehouseStorage
from tests.connectors.mark_histories import Begun, History
from tests.connectors.mark_lakes import PaimonLake


def main() -> None:
    """Print what each tenth of a chain costs."""
    parser = argparse.ArgumentParser()
    for name, number in (("files", 100_000), ("runs", 1_000)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--committed-files", type=int, default=20_000)
    parser.add_argument("--committed-runs", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        marks(Path(folder), given.files, given.runs)
    with tempfile.TemporaryDirectory() as folder:
        chain(Path(folder), given.committed_files, given.committed_runs)


def marks(folder: Path, files: int, runs: int) -> None:
    """Apply ``files`` in so many runs: what marks and their parts take."""
    storage = WarehouseStorage(pafs.LocalFileSystem(), str(folder), None)
    share, name = -(-files // runs), f"{PREFIX}benchmark"
    document = AppliedFiles().document()
    longest, seconds = 0, 0.0
    print(
        f"{'runs':>6} {'files':>9} {'mark chars':>10} {'parts':>5} {'read MB':>8} {'stored MB':>9}"
    )
    for number in range(runs):
        begun = time.perf_counter()
        applied = AppliedFiles.read(storage, name, document)
        landed = (landed_file(number * share + i) for i in range(share))
        applied = applied.with_files(landed)
        applied.store(storage, name)
        document = applied.document()
        seconds += time.perf_counter() - begun
        longest = max(longest, len(mark_text(document)))
        if (number + 1) % max(1, runs // 10) == 0:
            stored = sum(each.stat().st_size for each in folder.glob("_marks/*/*"))
            read = sum(len(each.content) for each in applied.parts)
            print(
                f"{number + 1:6} {len(applied):9,} {len(mark_text(document)):10,} "
                f"{len(applied.parts):5} {read / 1e6:8.2f} {stored / 1e6:9.2f}"
            )
    assert len(AppliedFiles.read(storage, name, document)) == share * runs
    print(f"longest mark: {longest:,} characters; {seconds / runs * 1_000:.0f} ms a run")


def landed_file(number: int) -> LandedFile:
    """A file that is only named."""
    path = f"/landing/orders/orders-{number:09}.csv"
    return LandedFile(path, path, FileVersion(1_000, number))


def chain(folder: Path, files: int, runs: int) -> None:
    """Land ``files``, apply them in so many runs, and compare what is applied with them."""
    landing, warehouse = folder / "landing", folder / "warehouse"
    landing.mkdir()
    warehouse.mkdir()
    for number in range(files):
        (landing / f"orders-{number:07}.csv").touch()
    lake = PaimonLake(warehouse, ())
    history = History(lake, lake.catalog, 0)
    share = -(-files // runs)
    listing, choosing, publishing, longest = [], [], [], 0
    print("runs  files applied  list ms  choose ms  publish ms  mark chars  parts  stored MB")
    for number in range(1, runs + 1):
        begun = time.perf_counter()
        found = pafs.LocalFileSystem().get_file_info(pafs.FileSelector(str(landing)))
        listed = tuple(LandedFile(e.path, e.path, FileVersion.of(e)) for e in found)
        at_listed = time.perf_counter()
        listing.append(at_listed - begun)
        table = lake.connector.metadata.load_table(lake.name)
        source = FileSource("new", str(landing), "csv", new_files=NewFiles("all"))
        marks, name = Marks(lake.connector, table), history.mark("a")
        chosen = chosen_files(
            SourceFiles(source, pafs.LocalFileSystem(), listed),
            NewFiles("all", max_files=share),
            marks,
            name,
        )
        at_chosen = time.perf_counter()
        assert chosen.mark is not None
        made = history.made("a", f"op-{number}", table, name, chosen)
        handle = history.handle(made)
        fragments = history.written(handle, table, range(number * share, number * share + share))
        Begun(made, handle, fragments, frozenset()).publish()
        choosing.append(at_chosen - at_listed)
        publishing.append(time.perf_counter() - at_chosen)
        text = mark_text(chosen.mark.document)
        longest = max(longest, len(text))
        if number % max(1, runs // 10) == 0:
            stored = sum(each.stat().st_size for each in warehouse.glob("_marks/*/*"))
            times = (
                1_000 * statistics.median(each[-10:]) for each in (listing, choosing, publishing)
            )
            parts = len(chosen.mark.document["parts"])
            print(
                f"{number:4}  {chosen.mark.document['files']:13,}  "
                + "  ".join(f"{each:9.1f}" for each in times)
                + f"  {len(text):10,}  {parts:5}  {stored / 1e6:9.2f}"
            )
    table = lake.connector.metadata.load_table(lake.name)
    mark = Marks(lake.connector, table).newest(history.mark("a"))
    assert mark is not None
    applied = AppliedFiles.read(lake.connector.storage, history.mark("a"), mark.document)
    assert len(applied) == files
    assert sum(lake.ids().values()) == runs * share
    print(f"longest mark: {longest:,} characters; each of {files:,} files applied once")


if __name__ == "__main__":
    main()
