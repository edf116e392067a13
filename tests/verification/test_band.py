"""The closed forms of the re-check's second solver, put back into the equations they solve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from builders import small

import feelstream as fs
from feelstream.verification.band import efficiency_at_power, efficiency_at_price


def exact_marginal(x: np.ndarray) -> np.ndarray:
    """e^x (x−1) + 1 by its series where the terms would cancel: Σ x^k / (k (k−2)!)."""
    series = np.zeros_like(x)
    factorial = 1.0
    for k in range(2, 20):
        factorial *= max(k - 2, 1)
        series += x**k / (k * factorial)
    return np.where(x < 0.5, series, np.exp(x) * (x - 1) + 1)


def test_efficiency_at_price() -> None:
    z = np.geomspace(1e-20, 1e200, 2000)
    np.testing.assert_allclose(exact_marginal(efficiency_at_price(z)), z, rtol=1e-8)


def test_efficiency_at_power() -> None:
    q = 1 + np.geomspace(1e-12, 1e200, 2000)
    x = efficiency_at_power(q)
    assert (x > 0).all()
    ratio = np.where(x < 1e-3, x / 2 + x**2 / 6 + x**3 / 24, np.expm1(x) / x - 1)
    np.testing.assert_allclose(ratio, q - 1, rtol=1e-8)
    assert (efficiency_at_power(np.array([0.5, 1.0])) == 0).all()


def test_a_price_far_from_one_is_found(tmp_path: Path) -> None:
    """At so few bits log μ is below −512, where the doubles lie further apart than an absolute tolerance of 1e-13."""
    scenario = small("policy.name=ocean", "radio.update_bits=1e-100", "radio.fading=none", "data.eligible=with_data")
    report = fs.verify(fs.simulate(scenario, 0).save(tmp_path / "run"))
    assert report.ok, report.disagreement
