"""Dissimilarity in blocks, against its definition with exact fractions."""

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


def test_opposite_labels_are_2_apart() -> None:
    """With two classes, x = (1, −1) and y = (−1, 1): ‖x − y‖² = 8 over 4."""
    assert importance.dissimilarity(np.array([[0, 7], [7, 0]], np.int32), np.array([3, 0])).tolist() == [2.0, 0.0]


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
