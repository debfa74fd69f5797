"""The command on cases of its own: what passes, what fails and how, what it refuses to run."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.__main__ import CASES_VARIABLE, main
from tests.acceptance.own_cases import BAD, GOOD, REFUSED, TARGET, UPSERT, case, changed
from tests.support.table_kinds import BUILT

ROOT = Path(__file__).parents[2]
DUPLICATES = "MERGE_TARGET_ROW_MULTIPLE_MATCHES"


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def run(spark, *arguments: str) -> Done:
    """The command in this process, on a session that is there."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main([*arguments], spark)
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cases") / "cases.jsonl"
    documents = [*GOOD, *(document for document, _ in (REFUSED | BAD).values())]
    path.write_text("\n".join(map(json.dumps, documents)) + "\n\n")
    return path


@pytest.fixture(scope="module")
def whole_run(cases, spark, tmp_path_factory) -> tuple[Done, list[dict]]:
    report = tmp_path_factory.mktemp("report") / "report.json"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(CASES_VARIABLE, str(cases))
        done = run(spark, "--report", str(report))
    assert report.exists(), done.stderr
    return done, json.loads(report.read_text())["runs"]


def test_the_last_line_has_the_counts(whole_run):
    done, runs = whole_run
    good = len(GOOD) + 2  # two cases run in both modes of cardinality
    count = good + len(REFUSED) + len(BAD)
    *_, last = done.stdout.splitlines()
    assert last.startswith(
        f"{good} passed, {len(REFUSED)} refused, {len(BAD)} failed: {count} runs of "
    )
    assert done.returncode == 1
    assert len(runs) == count


@pytest.mark.parametrize("id_", [document["id"] for document in GOOD])
def test_what_holds_passes(whole_run, id_):
    runs = [each for each in whole_run[1] if each["id"] == id_]
    assert {each["outcome"] for each in runs} == {"passed"}, runs


@pytest.mark.parametrize("id_", REFUSED)
def test_what_holds_under_another_policy_alone_is_refused(whole_run, id_):
    (run,) = [each for each in whole_run[1] if each["id"] == id_]
    assert (run["outcome"], run["text"]) == ("refused", REFUSED[id_][1])


@pytest.mark.parametrize("id_", BAD)
def test_what_does_not_hold_is_a_line(whole_run, id_):
    lines = [line for line in whole_run[0].stdout.splitlines() if f" {id_}: " in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"FAILED append-cow {id_}: {BAD[id_][1]}")


def test_a_run_without_failures_ends_well(cases, spark):
    kinds = [kind.name for kind in BUILT]
    done = run(spark, "--cases", str(cases), "--only", "upsert", "--tables", ",".join(kinds))
    assert done.returncode == 0, done.stderr
    count = len(kinds)
    assert done.stdout.startswith(
        f"{count} passed, 0 refused, 0 failed: {count} runs of 1 cases on {', '.join(kinds)}"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tables", "heap"], "heap is not one of"),
        (["--only", "nothing"], "no such case: nothing"),
    ],
)
def test_what_can_not_run_is_said(cases, arguments, message):
    done = subprocess.run(
        [sys.executable, "-m", "tests.acceptance", "--cases", str(cases), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


NOT_UNDERSTOOD = {
    "surprise is not known": case("field", UPSERT, {"rows": []}, surprise=1),
    "setting storeAssignmentPolicy = loose is not known": case(
        "setting", UPSERT, {"rows": []}, settings={"storeAssignmentPolicy": "loose"}
    ),
    "defaults of target: no such column: w": case("defaults", UPSERT, {"rows": []})
    | {"create": [changed(TARGET, defaults={"w": "1"})]},
    "either rows or a category": case("nothing", UPSERT, {}),
    "RequestError: REQUEST_INVALID: 'WEATHER' is not a type": case("table", UPSERT, {"rows": []})
    | {"create": [changed(TARGET, columns=[["id", "WEATHER"]], rows=[])]},
}


def test_a_case_that_is_not_understood_fails_beside_the_others(spark, tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, [*NOT_UNDERSTOOD.values(), GOOD[0]])) + "\n{no JSON")
    done = run(spark, "--cases", str(path))
    *failures, last = done.stdout.splitlines()
    for message, document in NOT_UNDERSTOOD.items():
        line = next(each for each in failures if f" {document['id']}" in each)
        assert message in line
    assert any("append-cow line 7: line 7: " in each for each in failures)
    assert last.startswith("1 passed, 0 refused, 6 failed: 7 runs of 7 cases on append-cow")
    assert done.returncode == 1


def test_what_nobody_can_check_is_told_apart(spark, tmp_path):
    rules = {"spark_v2": True, "ansi_effective": False}
    documents = [
        case("category", "DELETE FROM target WHERE nothing = 1", {"category": "weather"}),
        case("no error", "DELETE FROM target", {"category": "weather"}),
        case("rule", UPSERT, {"category": "cardinality"}, cardinality_error_in=rules),
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, documents)))
    done = run(spark, "--cases", str(path))
    assert done.stdout.splitlines()[:-1] == [
        "UNCHECKED append-cow category: category 'weather' is not known",
        "FAILED append-cow no error: target changed; expected a final error, got no error",
        "UNCHECKED append-cow rule [effective]: its rows are not in by_hand.json",
        f"FAILED append-cow rule [strict]: target changed; expected {DUPLICATES}, got no error",
    ]
    assert "0 passed, 0 refused, 2 failed, 2 unchecked: 4 runs" in done.stdout
    assert done.returncode == 1
