"""The regular expressions of a package, found in its code, and the texts on which they are slow.

``slow_patterns`` tries them all on up to a megabyte; what it may compute is limited
(``MOST_SECONDS``), not how long it waits. The texts are made from the parsed expression: what leads
to a repetition, then what is repeated, many times, then something that does not fit.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import re._constants as sre
import re._parser as sre_parser
import resource
import string
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

METHODS: Final = ("search", "match", "fullmatch", "sub", "subn", "finditer", "findall", "split")
# Processor time of all expressions, and of one on one text; a linear one takes milliseconds.
MOST_SECONDS: Final = 300
MOST_SECONDS_OF_ONE: Final = 1.0
LONGEST: Final = 1_000_000
_LENGTHS: Final = (1_000, 20_000)
_LEAST_REPEATS: Final = 20
_CLASSES: Final = " a0_\n\t'\"`\\.,-()[]{}:/=x\u00e9"
_UNFIT: Final = ("", "\0", "\n!", "!\n\u20ac")


@dataclass(frozen=True)
class Pattern:
    """An expression, the methods that are called, and where it stands."""

    place: str
    compiled: re.Pattern[Any]
    methods: tuple[str, ...]

    def worst(self, length: int) -> Iterator[Any]:
        """Texts of about this length, as the expression takes them: text or bytes."""
        tree = sre_parser.parse(self.compiled.pattern, self.compiled.flags)
        for lead, pumps in _repetitions(tree, ""):
            for pump in pumps:
                times = max(length // len(pump), 1)
                for end in _UNFIT:
                    yield self._of(f"{lead}{pump * times}{end}")
                if lead:
                    yield self._of((lead + pump) * max(length // len(lead + pump), 1))
        # Wherever a search begins anew.
        start = _sample(tree)
        if start:
            yield self._of(start * max(length // len(start), 1) + "\0")

    def seconds(self, text: Any, method: str) -> float:
        """Processor time of a call."""
        began = time.process_time()
        if method in ("sub", "subn"):
            getattr(self.compiled, method)(b"" if isinstance(text, bytes) else "", text)
        elif method == "finditer":
            for _ in self.compiled.finditer(text):
                pass
        else:
            getattr(self.compiled, method)(text)
        return time.process_time() - began

    def slow(self, longest: int) -> str:
        """The beginning of a text that takes too long, with its length; empty: there is none."""
        for method in self.methods:
            worst, most = 0, -1.0
            for length in (min(each, longest) for each in _LENGTHS):
                for number, text in enumerate(self.worst(length)):
                    spent = self.seconds(text, method)
                    if spent > MOST_SECONDS_OF_ONE * length / LONGEST + 0.05:
                        return f"{method}, {len(text):,} characters of {text[:40]!r}: {spent:.2f} s"
                    if length == min(_LENGTHS[-1], longest) and spent > most:
                        worst, most = number, spent
            if most < 0:
                continue
            text = next(each for n, each in enumerate(self.worst(longest)) if n == worst)
            spent = self.seconds(text, method)
            if spent > MOST_SECONDS_OF_ONE:
                return f"{method}, {len(text):,} characters of {text[:40]!r}: {spent:.2f} s"
        return ""

    def _of(self, text: str) -> Any:
        return text.encode() if isinstance(self.compiled.pattern, bytes) else text


def patterns(package: str, samples: Mapping[str, Sequence[Any]]) -> list[Pattern]:
    """All expressions of a package; ``samples``: those that values of a run are part of, by place.

    Raises:
        KeyError: such an expression has no sample.
    """
    found = []
    root = importlib.import_module(package)
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if info.name.endswith("__main__") or info.ispkg:
            continue
        path = Path(importlib.util.find_spec(info.name).origin)  # type: ignore[union-attr, arg-type]
        text = path.read_text(encoding="utf-8")
        if "import re\n" in text:
            found += _of_module(info.name, text, samples)
    return found


def _of_module(name: str, text: str, samples: Mapping[str, Sequence[Any]]) -> Iterator[Pattern]:
    tree, module = ast.parse(text), importlib.import_module(name)
    called = _methods_of_names(tree)
    owners = {id(c): n for n in ast.walk(tree) for c in ast.iter_child_nodes(n)}
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and _is_of_re(call.func)):
            continue
        assert isinstance(call.func, ast.Attribute)
        method = call.func.attr
        methods = (method,) if method != "compile" else called.get(_name(owners, call), ())
        place = f"{name}: {ast.unparse(call.args[0])}"
        flags = next((k.value for k in call.keywords if k.arg == "flags"), None)
        flags = flags or (call.args[1] if method == "compile" and len(call.args) > 1 else None)
        scope = {**vars(module), "re": re}
        try:
            chosen = 0 if flags is None else eval(ast.unparse(flags), scope)
            expressions = [eval(ast.unparse(call.args[0]), scope)]
        except NameError:
            expressions = list(samples[place])
            chosen = 0
        for each in expressions:
            yield Pattern(place, re.compile(each, chosen), methods or METHODS[:3])


def _methods_of_names(tree: ast.AST) -> dict[str, tuple[str, ...]]:
    """Which methods a module calls on what it has under a name."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            found.setdefault(name, set()).add(node.attr)
    return {name: tuple(sorted(methods)) for name, methods in found.items()}


def _is_of_re(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in ("compile", *METHODS)
    )


def _name(owners: Mapping[int, ast.AST], call: ast.Call) -> str:
    owner = owners.get(id(call))
    if isinstance(owner, ast.IfExp):
        owner = owners.get(id(owner))
    target: Any = getattr(owner, "target", None) or next(iter(getattr(owner, "targets", ())), None)
    return str(getattr(target, "attr", None) or getattr(target, "id", ""))


def _repetitions(tree: Any, lead: str) -> Iterator[tuple[str, list[str]]]:
    """Each long repetition: a text that leads to it, and texts that it repeats."""
    for code, value in tree:
        if code in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            _, most, body = value
            yield from _repetitions(body, lead)
            if most >= _LEAST_REPEATS:
                pumps = {char for char in _pool(tree) if _fits(body, char)}
                pumps |= {_sample(body), _sample(body) * 2}
                yield lead, sorted(pumps - {""})
        elif code is sre.SUBPATTERN:
            yield from _repetitions(value[-1], lead)
        elif code is sre.BRANCH:
            for each in value[1]:
                yield from _repetitions(each, lead)
        elif code in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _repetitions(value[1], lead)
        elif code is sre.ATOMIC_GROUP:
            yield from _repetitions(value, lead)
        lead += _sample([(code, value)])


def _pool(tree: Any) -> set[str]:
    """Characters that may matter: those of the expression, and one of each class."""
    pool = set(_CLASSES)
    for code, value in tree:
        if code in (sre.LITERAL, sre.NOT_LITERAL):
            pool.add(chr(value))
        elif code is sre.IN:
            pool |= {chr(each) for kind, each in value if kind is sre.LITERAL}
            pool |= {chr(each[0]) for kind, each in value if kind is sre.RANGE}
        elif code in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            pool |= _pool(value[2])
        elif code is sre.SUBPATTERN:
            pool |= _pool(value[-1])
        elif code is sre.BRANCH:
            for each in value[1]:
                pool |= _pool(each)
    return {each for each in pool if not 0xD800 <= ord(each) <= 0xDFFF}


def _fits(body: Any, char: str) -> bool:
    """Whether a repeated part takes this character alone."""
    items = list(body)
    if len(items) != 1:
        return False
    code, value = items[0]
    if code is sre.SUBPATTERN:
        return _fits(value[-1], char)
    if code is sre.BRANCH:
        return any(_fits(each, char) for each in value[1])
    if code in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _fits(value[2], char)
    return _takes(code, value, ord(char))


def _takes(code: Any, value: Any, char: int) -> bool:
    if code is sre.LITERAL:
        return bool(value == char)
    if code is sre.NOT_LITERAL:
        return bool(value != char)
    if code is sre.ANY:
        return chr(char) != "\n"
    if code is sre.RANGE:
        return bool(value[0] <= char <= value[1])
    if code is sre.CATEGORY:
        return _in_category(value, chr(char))
    if code is sre.IN:
        negated = value[0][0] is sre.NEGATE
        return any(_takes(*each, char) for each in value[negated:]) != negated
    return False


def _in_category(category: Any, char: str) -> bool:
    name = str(category).removeprefix("CATEGORY_").removeprefix("UNI_")
    is_not = name.startswith("NOT_")
    kind = {"SPACE": r"\s", "DIGIT": r"\d", "WORD": r"\w"}[name.removeprefix("NOT_")]
    return (re.match(kind, char) is not None) != is_not


def _sample(items: Any) -> str:
    """A text that the parts take, with as few repetitions as they need."""
    text = ""
    for code, value in items:
        if code in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            text += _sample(value[2]) * value[0]
        elif code is sre.SUBPATTERN:
            text += _sample(value[-1])
        elif code is sre.BRANCH:
            text += _sample(value[1][0])
        elif code is sre.ATOMIC_GROUP:
            text += _sample(value)
        elif code in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            chars = (chr(value),) if code is sre.LITERAL else (*string.printable, "\u00e9")
            text += next((c for c in chars if _takes(code, value, ord(c))), "")
    return "".join(each for each in text if not 0xD800 <= ord(each) <= 0xDFFF)


def slow_patterns(
    package: str, samples: Mapping[str, Sequence[Any]], bounds: Mapping[str, int] | None = None
) -> dict[str, str]:
    """The expressions that are not linear, with the text; tried in a process of its own.

    ``samples`` are as for ``patterns``. ``bounds``: how long texts are at most, by module.
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.support.patterns", package],
        input=repr((dict(samples), dict(bounds or {}))),
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
        check=False,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told, done.stderr
    slow = {each["place"]: each["slow"] for each in told if "slow" in each}
    if done.returncode != 0:
        slow[told[-1]["place"]] = f"ended with {done.returncode}: {done.stderr[-2000:]}"
    return slow


def _main(package: str) -> None:
    """Print the place of each expression before it is tried, and what is slow."""
    samples, bounds = ast.literal_eval(sys.stdin.read())
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, hard))
    for pattern in patterns(package, samples):
        sys.stdout.write(json.dumps({"place": pattern.place}) + "\n")
        sys.stdout.flush()
        if slow := pattern.slow(bounds.get(pattern.place.partition(":")[0], LONGEST)):
            sys.stdout.write(json.dumps({"place": pattern.place, "slow": slow}) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1])
