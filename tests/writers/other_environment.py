"""Writes the same rows with the libraries of ``.venv-writers``, in which this file runs alone.

``python other_environment.py WRITER FOLDER`` writes the rows of ``source-0.parquet``,
``source-1.parquet`` … of the folder, each with other options, and prints a line of JSON for each
file: its name and options, and the reason if the writer refused.
"""

# ruff: noqa: T201 - its output is for another process

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Found = Iterator[tuple[dict[str, Any], Callable[[Path, Path], None]]]


def fastparquet() -> Found:
    """Flat columns without decimals."""
    import fastparquet
    import pandas as pd

    for codec in (None, "SNAPPY", "GZIP", "ZSTD", "BROTLI"):
        for times in ("int64", "int96"):
            for version in (1, 2):
                options = {"codec": codec, "times": times, "statistics": version == 1}

                def write(
                    source: Path,
                    path: Path,
                    codec: Any = codec,
                    times: str = times,
                    v: int = version,
                ) -> None:
                    frame = pd.read_parquet(source, dtype_backend="numpy_nullable")
                    fastparquet.write(
                        str(path),
                        frame,
                        compression=codec,
                        times=times,
                        stats=v == 1,
                        row_group_offsets=[0, 7],
                        object_encoding={"s": "utf8", "x": "bytes"},
                    )

                yield options, write


def deltalake() -> Found:
    """What delta-rs writes into its table."""
    import pyarrow.parquet as pq
    from deltalake import WriterProperties, write_deltalake

    for codec in ("UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4_RAW", "ZSTD"):
        for group in (7, 1000):
            options = {"codec": codec, "group": group}

            def write(source: Path, path: Path, codec: str = codec, group: int = group) -> None:
                folder = path.with_suffix(".delta")
                properties = WriterProperties(
                    compression=codec,
                    max_row_group_size=group,
                    data_page_size_limit=256,
                    write_batch_size=4,
                )
                write_deltalake(str(folder), pq.read_table(source), writer_properties=properties)
                (found,) = folder.glob("*.parquet")
                shutil.copyfile(found, path)

            yield options, write


def chdb() -> Found:
    """ClickHouse, with its own encoder and with Arrow's."""
    import chdb

    for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd"):
        for own in (0, 1):
            for version in ("1.0", "2.6"):
                settings = {
                    "output_format_parquet_compression_method": codec,
                    "output_format_parquet_use_custom_encoder": own,
                    "output_format_parquet_version": version,
                    "output_format_parquet_row_group_size": 7 if own else 1000,
                    "output_format_parquet_string_as_string": 1,
                }

                def write(source: Path, path: Path, settings: dict[str, Any] = settings) -> None:
                    text = ", ".join(f"{key}={value!r}" for key, value in settings.items())
                    chdb.query(
                        f"SELECT * FROM file('{source}', Parquet) INTO OUTFILE '{path}' "
                        f"FORMAT Parquet SETTINGS {text}"
                    )

                yield settings, write


def main() -> None:
    """Write the files."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    writers = {"fastparquet": fastparquet, "deltalake": deltalake, "chdb": chdb}
    for number, (options, write) in enumerate(writers[name]()):
        path = folder / f"{name}-{number}.parquet"
        answer: dict[str, Any] = {"options": options, "file": path.name}
        try:
            write(folder / f"source-{number}.parquet", path)
        except Exception as error:  # noqa: BLE001 - the other process tells it
            answer["reason"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
