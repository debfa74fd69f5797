"""Templates in SQL files: filled in as for a run that starts now, or masked by words.

A word is as long as the template, so that places in the text stay what they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from airflow.sdk import DAG, timezone
from airflow.sdk.execution_time import macros
from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from airflow_provider_merge.exceptions import invalid

_DAG_ID = "check"
_BLOCK: Final = re.compile(r"\{[%#]")


def template_values(settings: Sequence[str], params: Path | None = None) -> dict[str, Any]:
    """What templates can name: Airflow's own values for a run that starts now, and what is given.

    ``settings``: each ``NAME=VALUE``. ``params``: a JSON file with the values of ``params``.

    Raises:
        RequestError: REQUEST_INVALID, naming the option of the command.
    """
    # As in a run's context, a time with pendulum's methods.
    now = timezone.coerce_datetime(datetime.now(UTC))
    day = now.strftime("%Y-%m-%d")
    values: dict[str, Any] = {
        "ds": day,
        "ds_nodash": now.strftime("%Y%m%d"),
        "ts": now.isoformat(),
        "ts_nodash": now.strftime("%Y%m%dT%H%M%S"),
        **dict.fromkeys(("logical_date", "data_interval_start", "data_interval_end"), now),
        "macros": macros,
        "run_partition": lambda *_, **__: day,
        "run_branch": lambda *_, **__: "wap_run",
        "params": {} if params is None else _params(params),
    }
    for setting in settings:
        _set(values, setting)
    return values


def rendered(path: Path, values: Mapping[str, Any]) -> str:
    """The text of a file, with Airflow's filters for templates.

    Raises:
        RequestError: REQUEST_INVALID: a template has no value, or cannot be read.
    """
    environment = _environment()
    environment.loader = FileSystemLoader(path.parent)
    with _naming_the_template():
        return environment.get_template(path.name).render(values)


def rendered_text(text: str, values: Mapping[str, Any]) -> str:
    """The same for a text that includes no files."""
    with _naming_the_template():
        return _environment().from_string(text).render(values)


def _environment() -> Environment:
    dag = DAG(_DAG_ID, schedule=None, auto_register=False, template_undefined=StrictUndefined)
    return dag.get_template_env()


@contextmanager
def _naming_the_template() -> Iterator[None]:
    try:
        yield
    except (TemplateError, UnicodeDecodeError, TypeError, AttributeError) as error:
        remedy = "Give values for templates with --set NAME=VALUE, or with --params FILE."
        raise invalid("template", str(error), remedy) from None


def _params(file: Path) -> dict[str, Any]:
    try:
        params = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise invalid("--params", f"{file} cannot be read: {error}") from None
    if not isinstance(params, dict):
        raise invalid("--params", f"{file} holds no JSON object", 'Write {"name": value}.')
    return params


def _set(values: dict[str, Any], setting: str) -> None:
    path, separator, value = setting.partition("=")
    *parents, name = path.strip().split(".")
    place: Any = values
    for parent in parents:
        place = place.setdefault(parent, {})
    if not separator or not isinstance(place, dict):
        raise invalid("--set", f"{setting!r} is not NAME=VALUE")
    place[name] = value


@dataclass(frozen=True, slots=True)
class MaskedText:
    """``text`` can be split into tokens; all positions are those of the text as it was written."""

    text: str
    templates: dict[str, str]

    def restored(self, text: str) -> str:
        """A part of the text, perhaps edited, with its templates."""
        for word, template in self.templates.items():
            text = text.replace(word, template)
        return text


def masked(text: str) -> MaskedText | None:
    """The text with words for its expressions; None: blocks decide which statements there are."""
    if _BLOCK.search(text):
        return None
    templates: dict[str, str] = {}
    parts, end = [], 0
    while (start := text.find("{{", end)) >= 0 and (close := text.find("}}", start + 2)) >= 0:
        template = text[start : close + 2]
        word = f"t{len(templates):x}".ljust(len(template), "_")
        templates[word] = template
        parts += [text[end:start], word]
        end = close + 2
    return MaskedText("".join((*parts, text[end:])), templates)
