"""Random joint problems, ordinary and extreme, for the tests beside this file."""

from __future__ import annotations

import numpy as np

from feelstream.policies.solvers.devices import Devices

CYCLES, LAMBDA, BITS, ROUND_S = 419328000.0, 1e-27, 698880.0, 4.0
KINDS = ("paper", "stress", "wide", "late", "noisy", "power", "cycles")


def problem(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Devices:
    """Devices of the paper's table, of its radio-bound variant, or with one thing at its extreme.

    wide: weights over nine orders; late: hardly any time beside computing; noisy: SNR far below 1; power: a limit
    that binds; cycles: every device has its own, over a factor of twenty.
    """
    cycles = CYCLES * 10 ** rng.uniform(-1.2, 0.1, shape) if kind == "cycles" else CYCLES
    f_hz = rng.uniform(0.15e9, 1.52e9, shape)
    beta = 10 ** (rng.uniform(-5, 3, shape) / 10)
    weight = rng.uniform(0.1, 1.0, shape)
    band_hz, noise, power_w = 20e6, 1e-13, 2.0
    if kind == "stress":
        band_hz, power_w = 1e6, 8e-6
    if kind == "wide":
        weight = 10 ** rng.uniform(-9, 0, shape)
    if kind == "late":
        f_hz = CYCLES / (ROUND_S - 10 ** rng.uniform(-1.5, -0.5, shape))
    if kind == "noisy":
        noise, power_w = 1e-4, 1e6
    if kind == "power":
        power_w, noise = 1e-3, 1e-11
        beta = 10 ** (rng.uniform(-20, 3, shape) / 10)
    return Devices.of(
        weight,
        band_hz * noise / beta,
        ROUND_S - cycles / f_hz,
        np.array(power_w),
        ROUND_S,
        LAMBDA * cycles**3,
        BITS * np.log(2) / band_hz,
    )
