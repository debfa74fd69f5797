"""Orders of two tries' steps by chance; all by ``python -m tests.races.two_tries``."""

from __future__ import annotations

from tests.races.two_tries import place, run_trials
from tests.support.turns import part


def test_no_order_of_steps_publishes_what_was_given_up() -> None:
    with place("local") as storage:
        done, problems = run_trials(storage, 300, seed=part(100))

    assert done == 300
    assert problems == []
