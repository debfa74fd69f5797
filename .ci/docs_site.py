"""What turns docs/ into a site: the hooks that mkdocs.yml names.

The navigation is the tables of docs/README.md, so that a page stands in one index only. Links
lead wherever they lead in the repository: a file outside of docs/ becomes a page of its own as soon
as a page names it. The API reference has a page for each public module of the provider, and one for
the parameters that operators and sensors inherit.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from docs_pages import (
    DOCS,
    INDEX,
    LINK,
    ROOT,
    absolute,
    file_of,
    in_site,
    linked,
    navigation,
    page_of,
    parts,
    reference,
)
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

README = ROOT / "README.md"
_LANGUAGES = {".py": "python", ".sql": "sql", ".toml": "toml", ".json": "json"}
_log = get_plugin_logger("docs_site")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let the navigation be the index, then the API reference."""
    config.nav = [
        {"Overview": page_of(README)},
        {"All pages": page_of(INDEX)},
        *({title: [{name: page} for name, page in pages]} for title, pages in navigation()),
        {"API reference": [{title: page} for title, page, _ in reference()]},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference, and the files of the repository that pages link to."""
    for title, page, names in reference():
        text = "\n".join(_documented(name) for name in names)
        files.append(File.generated(config, page, content=f"# {title}\n\n{text}"))
    waiting = [
        README,
        *(DOCS / file.src_uri for file in files.documentation_pages() if file.abs_src_path),
    ]
    known = set(waiting)
    while waiting:
        file = waiting.pop()
        if DOCS not in file.parents:
            files.append(File.generated(config, page_of(file), content=_content(file)))
        if file.suffix == ".md":
            named = {each for each in linked(file) if each.is_file() and DOCS not in each.parents}
            waiting += sorted(named - known)
            known |= named
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Make links that leave docs/ lead to the pages of those files."""
    file = file_of(page.file.src_uri)
    if file.suffix != ".md":
        return markdown
    return "".join(
        part if is_code else LINK.sub(lambda link: _moved(file, link), part)
        for part, is_code in parts(markdown)
    )


def _documented(name: str) -> str:
    # People's own code calls hooks; Airflow calls operators, sensors and triggers.
    members = "null" if ".hooks." in name else "[]"
    return f"::: {name}\n    options:\n      members: {members}\n"


def _content(file: Path) -> str:
    text = file.read_text()
    if file.suffix == ".md":
        return text
    language = _LANGUAGES.get(file.suffix, "text")
    return f"# {file.relative_to(ROOT).as_posix()}\n\n````{language}\n{text}\n````\n"


def _moved(file: Path, link: re.Match[str]) -> str:
    target, anchor = link[1], link[2] or ""
    if ":" in target:
        return link[0]
    if not absolute(file, target).is_file():
        _log.warning("%s: there is no file %s", file.relative_to(ROOT), target)
        return link[0]
    folder = posixpath.dirname(page_of(file)) or "."
    return posixpath.relpath(in_site(file, target), folder) + anchor
