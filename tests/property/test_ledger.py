"""The ledger of seeds: what was run is known later, whatever ended the run."""

from __future__ import annotations

from tests.property.ledger import Ledger, Run, ranges, summary


def run(seed: int, commit: str = "abc", failure: str | None = None) -> Run:
    return Run(seed, commit, 1.5, 3, {"MERGE": 2, "DELETE": 1}, failure)


def test_runs_come_back(tmp_path):
    ledger = Ledger(tmp_path / "new folder" / "seeds.jsonl")
    assert (ledger.runs(), ledger.next_seed()) == ([], 0)
    runs = [run(4), run(5, failure="seed 5: wrong\nrows é"), run(4, commit="abd")]
    for each in runs:
        ledger.add(each)
    assert ledger.runs() == runs
    assert ledger.next_seed() == 6


def test_only_seeds_that_this_commit_did_not_run_are_missing(tmp_path):
    ledger = Ledger(tmp_path / "seeds.jsonl")
    for each in (run(4), run(6), run(5, commit="abd")):
        ledger.add(each)
    assert ledger.missing(range(3, 8), "abc") == [3, 5, 7]
    assert ledger.missing(range(3, 8), "abd") == [3, 4, 6, 7]


def test_a_line_that_was_cut_off_is_as_if_it_was_not_there(tmp_path):
    ledger = Ledger(tmp_path / "seeds.jsonl")
    ledger.add(run(4))
    ledger.add(run(5))
    ledger.path.write_text(ledger.path.read_text()[:-20])
    ledger.add(run(6))
    assert [each.seed for each in ledger.runs()] == [4, 6]
    assert ledger.missing(range(4, 7), "abc") == [5]


def test_the_summary_adds_up_by_commit():
    lines = summary([run(4), run(5, failure="seed 5: wrong\nrows"), run(7, "abd")]).splitlines()
    assert lines == [
        "abc: seeds 4-5, 6 statements, 3 s, 1 failed",
        "     4   67%  MERGE",
        "     2   33%  DELETE",
        "  seed 5: seed 5: wrong",
        "abd: seeds 7, 3 statements, 2 s, 0 failed",
        "     2   67%  MERGE",
        "     1   33%  DELETE",
    ]


def test_ranges():
    assert ranges([3, 1, 2, 7, 9, 8, 2]) == "1-3, 7-9"
    assert ranges([]) == ""
