"""Looking at folders while others write in them and remove them."""

from __future__ import annotations

import os
from pathlib import Path


def files_below(folder: Path) -> list[Path]:
    """All files below a folder; a folder that goes meanwhile has none (``rglob`` raises)."""
    return [Path(place, name) for place, _, names in os.walk(folder) for name in names]
