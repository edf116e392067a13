"""Importance against its definition, written out label by label in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feelstream.model import importance

COUNTS = st.integers(0, 4)


@st.composite
def label_counts(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    classes = draw(st.integers(1, 5))
    row = st.lists(COUNTS, min_size=classes, max_size=classes)
    return draw(st.lists(row, min_size=1, max_size=6)), draw(row)


def centred(counts: list[int]) -> list[Fraction]:
    mean = Fraction(sum(counts), len(counts))
    return [(count - mean) / mean for count in counts]


def exact_dissimilarity(fresh: list[int], used: list[int]) -> Fraction:
    if sum(fresh) == 0 or sum(used) == 0:
        return Fraction(0)
    x, y = centred(used), centred(fresh)
    scale = sum(a * a for a in x) + sum(b * b for b in y)
    return sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), Fraction(0)) / scale if scale else Fraction(0)


@given(label_counts())
def test_dissimilarity_by_definition(drawn: tuple[list[list[int]], list[int]]) -> None:
    fresh, used = drawn
    found = importance.dissimilarity(np.array(fresh, np.int32), np.array(used))
    assert found == pytest.approx([float(exact_dissimilarity(row, used)) for row in fresh], abs=1e-12)
    assert ((found >= 0) & (found <= 2 + 1e-12)).all()


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=8))
def test_amount_by_definition(devices: list[tuple[int, bool]]) -> None:
    fresh, feasible = np.array([d[0] for d in devices]), np.array([d[1] for d in devices])
    found = importance.amount(fresh, feasible)
    total = sum(count for count, able in devices if able)
    many = sum(able for _, able in devices)
    assert found == pytest.approx([many * count / total if total else 0.0 for count, _ in devices])
    if total:
        assert found[feasible].mean() == pytest.approx(1)


@pytest.mark.parametrize(
    ("fresh", "used", "expected"),
    [
        ([4, 0], [0, 9], 2.0),  # opposite: the largest there is
        ([3, 1], [6, 2], 0.0),  # the same proportions
        ([2, 2], [5, 1], 1.0),  # balanced against anything
        ([2, 2], [7, 7], 0.0),  # both balanced: 0/0
        ([0, 0], [7, 1], 0.0),  # nothing fresh
        ([4, 0], [0, 0], 0.0),  # nothing used yet
    ],
)
def test_edges_of_dissimilarity(fresh: list[int], used: list[int], expected: float) -> None:
    found = importance.dissimilarity(np.array([fresh], np.int32), np.array(used))
    assert found == pytest.approx([expected], abs=1e-15)


def test_metrics_by_name() -> None:
    amount, other = np.array([1.0, 0.5]), np.array([0.25, 2.0])
    found = {name: importance.METRICS.lookup(name)(amount, other).tolist() for name in importance.METRICS.names()}
    expected = {"combined": [1.25, 2.5], "amount": [1.0, 0.5], "dissimilarity": [0.25, 2.0]}
    assert {name: found[name] for name in expected} == expected
