"""The package ``spark_jobs``: where it is, whether another one hides it, and as a zip for Spark."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from functools import lru_cache
from pathlib import Path

NAME = "spark_jobs"

_PACKAGE = Path(__file__).resolve().parent.parent / NAME
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class ShadowedPackageError(ImportError):
    """Another package has the name of the one that holds the jobs."""


def package_folder() -> Path:
    """The folder of the ``spark_jobs`` that belongs to this provider."""
    return _PACKAGE


def main_file() -> Path:
    """The script that spark-submit runs."""
    return _PACKAGE / "main.py"


def require_own_package() -> None:
    """Check that ``import spark_jobs`` means the package beside this provider.

    Raises:
        ShadowedPackageError: another package of that name is imported instead; names both paths.
    """
    spec = importlib.util.find_spec(NAME)
    imported_folder = _folder_of(spec.origin) if spec is not None else None
    if imported_folder != _PACKAGE:
        raise ShadowedPackageError(_message(imported_folder or Path("(nothing)")))


def require_no_other_package() -> None:
    """Check that no folder of ``sys.path``, such as the DAG folder, holds another ``spark_jobs``.

    Where ours comes first, the other one is the hidden one, and its owner's imports fail instead.
    A folder without ``__init__.py`` (scripts for spark-submit) hides nothing and is left alone.

    Raises:
        ShadowedPackageError: names both paths.
    """
    require_own_package()
    _require_no_other(tuple(sys.path))


# Each operator asks, and a DAG file has hundreds.
@lru_cache(maxsize=1)
def _require_no_other(entries: tuple[str, ...]) -> None:
    for entry in entries:
        for candidate in (
            Path(entry or ".") / NAME / "__init__.py",
            Path(entry or ".", NAME + ".py"),
        ):
            if candidate.is_file() and _folder_of(str(candidate)) != _PACKAGE:
                raise ShadowedPackageError(_message(candidate.resolve()))


def write_zip(target: Path) -> None:
    """Write the package as a zip for ``--py-files``; equal sources give equal bytes."""
    sources = sorted(path for path in _PACKAGE.rglob("*") if _belongs(path))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sources:
            name = path.relative_to(_PACKAGE.parent).as_posix()
            info = zipfile.ZipInfo(name, date_time=_ZIP_EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes())


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"


def _folder_of(origin: str | None) -> Path | None:
    if origin is None:
        return None
    path = Path(origin).resolve()
    return path.parent if path.name == "__init__.py" else path


def _message(other: Path) -> str:
    return (
        f"Two packages are called {NAME}: {_PACKAGE}, which airflow-provider-merge needs, and "
        f"{other}. Remedy: rename the second one, for example to my_{NAME}."
    )
