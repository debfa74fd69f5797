"""Deletion vectors of Iceberg tables, as pyiceberg reads them."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile


def vectors_in(path: Path) -> dict[str, list[int]]:
    """The positions in the vectors of a Puffin file, by location of the data file."""
    found = deletion_vectors_from_puffin_file(PuffinFile(path.read_bytes()))
    return {each.referenced_data_file: each.to_vector().to_pylist() for each in found}
