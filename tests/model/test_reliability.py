"""Who delivers: the posterior, its forgetting, and the rests after failures."""

from __future__ import annotations

import numpy as np
import pytest

from feelstream.model.reporting import LONGEST_REST, Reliability

ONE, ALL = np.array([0]), np.ones(2, bool)


def turns(*arrived: bool) -> Reliability:
    """Device 0 has these turns, in rounds 1, 2, …; device 1 has none."""
    found = Reliability.first(2)
    for round, came in enumerate(arrived, start=1):
        found = found.after(round, ONE, np.array([came]))
    return found


def test_who_never_failed_is_certain_to_deliver() -> None:
    assert turns(True, True, True).expected.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("arrived", "expected"),
    [((False,), 1 / 2), ((False, False), 1 / 2.9), ((True, False), 1.9 / 2.9), ((False, True), 2 / 2.9)],
)
def test_the_posterior_forgets(arrived: tuple[bool, ...], expected: float) -> None:
    assert turns(*arrived).expected[0] == pytest.approx(expected)
    assert turns(*arrived).expected[1] == 1.0


def test_rests_double_and_end_with_a_probe_or_a_success() -> None:
    rests = [int(turns(*[False] * n).rests_until[0]) - n for n in range(1, 9)]
    assert rests == [1, 2, 4, 8, 16, 32, LONGEST_REST, LONGEST_REST]
    assert turns(False, False, True).rests_until[0] == 0
    failed_once = turns(False)
    assert [failed_once.ready(ALL, t).tolist() for t in (2, 3)] == [[False, True], [True, True]]


def test_nobody_rests_where_nobody_else_is_left() -> None:
    alone = np.array([True, False])
    assert turns(False).ready(alone, 2).tolist() == alone.tolist()


def test_one_who_failed_often_is_trusted_again_after_a_while() -> None:
    assert turns(*[False] * 10, *[True] * 20).expected[0] > 0.9
