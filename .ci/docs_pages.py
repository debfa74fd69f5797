"""The pages of the documentation: what stands in the index, in the API reference, in links.

Standard library only: the site is made of this (docs_site.py), and tests ask it what is missing.
"""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
# Beside the modules that Airflow's provider info names.
MORE_MODULES = (
    "airflow_provider_merge.operators.clauses",
    "airflow_provider_merge.operators.sources",
    "airflow_provider_merge.operators.statement_list",
    "airflow_provider_merge.operators.table_changes",
    "airflow_provider_merge.operators.write_audit_publish",
    "airflow_provider_merge.assets",
    "airflow_provider_merge.rendering",
    "airflow_provider_merge.run_partition",
    "airflow_provider_merge.exceptions",
)
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def navigation() -> list[tuple[str, list[tuple[str, str]]]]:
    """The sections of the index, each with the titles and pages that its tables name first.

    A page that is in two sections stands in the first one.
    """
    sections = []
    seen: set[str] = set()
    for section in INDEX.read_text().split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        rows = re.findall(r"^\| \[([^\]]+)\]\(([^)#]+)(?:#[^)]*)?\)", body, re.MULTILINE)
        pages = []
        for name, target in rows:
            page = in_site(INDEX, target)
            if page not in seen:
                seen.add(page)
                pages.append((name, page))
        sections.append((title, pages))
    return sections


def reference() -> list[tuple[str, str, list[str]]]:
    """The pages of the API reference: title, page, the classes and functions that it shows."""
    pages = [
        (
            name.removeprefix("airflow_provider_merge."),
            f"reference/{name}.md",
            [f"{name}.{each}" for each in _public_names(name)],
        )
        for name in modules()
    ]
    return [*pages, ("Inherited parameters", "reference/inherited.md", _inherited())]


def modules() -> list[str]:
    """The modules of the API reference."""
    sys.path.insert(0, str(ROOT))
    from airflow_provider_merge.get_provider_info import get_provider_info

    info = get_provider_info()
    named = [
        module
        for kind in ("operators", "sensors", "hooks", "triggers")
        for group in info[kind]
        for module in group["python-modules"]
    ]
    return [*named, *MORE_MODULES]


def linked(file: Path) -> set[Path]:
    """The files of the repository to which a markdown file links."""
    text = "".join(part for part, is_code in parts(file.read_text()) if not is_code)
    targets = (link[1] for link in LINK.finditer(text))
    return {absolute(file, target) for target in targets if ":" not in target}


def parts(markdown: str) -> list[tuple[str, bool]]:
    """A text in pieces, each with whether it is a block of code."""
    return [(part, part.startswith("```")) for part in _FENCE.split(markdown)]


def absolute(file: Path, target: str) -> Path:
    """The file to which a relative link in another file leads."""
    return Path(posixpath.normpath(file.parent / target))


def in_site(file: Path, target: str) -> str:
    """The page, as the site calls it, to which a link in a file leads."""
    path = absolute(file, target)
    return page_of(path) if path.is_file() else target


def page_of(file: Path) -> str:
    """The page, as the site calls it, that a file of the repository becomes."""
    if DOCS in file.parents:
        return file.relative_to(DOCS).as_posix()
    name = f"repository/{file.relative_to(ROOT).as_posix()}"
    return name if file.suffix == ".md" else f"{name}.md"


def file_of(page: str) -> Path:
    """The file of the repository that a page is made of."""
    inside = page.removeprefix("repository/")
    return DOCS / page if inside == page else ROOT / inside


def _public_names(module: str) -> list[str]:
    """The documented public classes and functions of a module, as they stand in it."""
    return [
        node.name
        for node in _body(ROOT / f"{module.replace('.', '/')}.py")
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and not node.name.startswith("_")
        and ast.get_docstring(node)
    ]


def _inherited() -> list[str]:
    """The classes that hold parameters of several operators or sensors."""
    provider = ROOT / "airflow_provider_merge"
    files = [*sorted((provider / "operators/_shared").glob("*.py")), provider / "sensors/base.py"]
    return [
        f"{'.'.join(file.relative_to(ROOT).with_suffix('').parts)}.{node.name}"
        for file in files
        for node in _body(file)
        if isinstance(node, ast.ClassDef) and ":param" in (ast.get_docstring(node) or "")
    ]


def _body(file: Path) -> list[ast.stmt]:
    return ast.parse(file.read_text()).body
