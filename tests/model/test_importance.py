"""Importance against its definition in exact fractions, dissimilarity also in blocks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feelstream.model import importance


def by_definition(fresh: list[int], used: list[int]) -> Fraction:
    """‖x − y‖² / (‖x‖² + ‖y‖²), x = u(used), y = u(fresh), u = counts over their mean − 1, in fractions."""
    if not sum(fresh) or not sum(used):
        return Fraction(0)
    x, y = ([Fraction(c * len(a), sum(a)) - 1 for c in a] for a in (used, fresh))
    below = sum((a * a for a in (*x, *y)), Fraction(0))
    return sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), Fraction(0)) / below if below else Fraction(0)


counts = st.lists(st.integers(0, 5), min_size=3, max_size=3)


@settings(max_examples=200, deadline=None)
@given(st.lists(counts, min_size=1, max_size=9), counts, st.integers(1, 10**6))
def test_agrees_with_the_definition(fresh: list[list[int]], used: list[int], factor: int) -> None:
    used = [c * factor for c in used]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importance, "BLOCK", 4)  # so that several blocks and a partial one occur
        found = importance.dissimilarity(np.array(fresh, np.int32), np.array(used))
    exact = np.array([float(by_definition(row, used)) for row in fresh])
    assert found == pytest.approx(exact, abs=1e-12)
    assert ((found >= 0) & (found <= 2)).all()
    balanced = [len(set(row)) == 1 and (len(set(used)) == 1 or not sum(row)) for row in fresh]
    assert (found[balanced] == 0).all()  # exactly: these are edge rules, not roundings


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4), st.lists(st.integers(-3, 3), min_size=4, max_size=4))
def test_nearly_even_counts_do_not_cancel(fresh: list[int], used: list[int]) -> None:
    """A million samples of each label and a few more or less: the terms agree in all but their last digits."""
    fresh, used = [10**6 + c for c in fresh], [5 * 10**7 + c for c in used]
    found = importance.dissimilarity(np.array([fresh], np.int32), np.array(used))[0]
    assert found == pytest.approx(float(by_definition(fresh, used)), abs=1e-13)


@given(st.lists(counts, min_size=1, max_size=9), counts, st.integers(1, 10**6))
def test_the_path_for_huge_counts_gives_the_same_digits(fresh: list[list[int]], used: list[int], factor: int) -> None:
    """Both paths are exact up to the same few last operations, so no order of additions shows."""
    given = np.array(fresh, np.int32), np.array([c * factor for c in used])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importance, "EXACT", 0.0)
        slow = importance.dissimilarity(*given)
    assert slow.tolist() == importance.dissimilarity(*given).tolist()


def test_counts_of_any_size_are_exact() -> None:
    fresh, used = [2**31 - 1, 2**31 - 5, 2**31 - 1], [10**15, 10**15 + 3, 10**15]
    found = importance.dissimilarity(np.array([fresh], np.int32), np.array(used))[0]
    assert found == pytest.approx(float(by_definition(fresh, used)), abs=1e-13)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=8))
def test_amount_by_definition(devices: list[tuple[int, bool]]) -> None:
    fresh, feasible = np.array([d[0] for d in devices]), np.array([d[1] for d in devices])
    found = importance.amount(fresh, feasible)
    total = sum(count for count, able in devices if able)
    many = sum(able for _, able in devices)
    assert found == pytest.approx([many * count / total if total else 0.0 for count, _ in devices])
    if total:
        assert found[feasible].mean() == pytest.approx(1)


def test_metrics_by_name() -> None:
    amount, other = np.array([1.0, 0.5]), np.array([0.25, 2.0])
    found = {name: importance.METRICS.lookup(name)(amount, other).tolist() for name in importance.METRICS.names()}
    expected = {"combined": [1.25, 2.5], "amount": [1.0, 0.5], "dissimilarity": [0.25, 2.0]}
    assert {name: found[name] for name in expected} == expected
