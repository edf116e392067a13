"""The joint problem as it is known when a round is planned, and the frequencies that its solution asks for."""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Ids, Reals
from feelstream.errors import ScenarioError
from feelstream.model.physics import compute_time_s
from feelstream.model.system import System
from feelstream.policies.base import Observation
from feelstream.policies.solvers.joint.devices import Devices

LEAST_SHARE_OF_ROUND = 1e-7  # that computing takes: what is left of the round is then known to 1e-9 or better


def check_computing_counts(system: System, policy: str) -> None:
    """Refuse rounds of which computing takes so little that T_rd − τ would be all rounding."""
    shortest_s = compute_time_s(float(system.device_cycles.min()), system.frequency_hz[1])
    if shortest_s < LEAST_SHARE_OF_ROUND * system.round_s:
        raise ScenarioError(
            f"system.round_s: with {policy}, computing at the highest frequency must take at least "
            f"{LEAST_SHARE_OF_ROUND:g} of a round; it takes {shortest_s:.3g} s of {system.round_s:g} s"
        )


def planned_devices(observation: Observation, n: int, weight: Reals, limit_w: float, fade_reserve: float) -> Devices:
    """The problem of all devices as it is known when scheduling n of them: h_k = γ β_k.

    The planned power stays `fade_reserve`·link_margin times below limit_w, unless a device at full frequency needs
    more for an n-th of the band: then that, so that all of Π_f(n) can be planned.
    """
    system = observation.system
    sending_s = system.round_s - observation.compute_time_s
    kappa_w, airtime_s = system.noise_w / (system.rate_discount * observation.beta), system.airtime_s
    with np.errstate(over="ignore", divide="ignore"):
        equal_w = kappa_w / n * np.expm1(airtime_s * n / np.maximum(sending_s, 0.0))
    # A rounding more, so that the share of such a device is an n-th and not a hair above it.
    power_w = np.clip(equal_w * (1 + 1e-12), limit_w / (fade_reserve * system.link_margin), limit_w)
    work = system.power_coefficient * system.cycles**3
    shortest_s = np.maximum(system.round_s - system.cycles / system.frequency_hz[0], 0.0)
    return Devices.of(weight, kappa_w, sending_s, power_w, system.round_s, work, airtime_s, shortest_s)


def frequencies(observation: Observation, schedule: Ids, sending_s: Reals) -> Reals:
    """f = c/(T − τ); rounding must not ask for more than a device has, nor for less than the lowest."""
    system = observation.system
    f_hz = np.maximum(system.device_cycles[schedule] / (system.round_s - sending_s), system.frequency_hz[0])
    return np.minimum(f_hz, observation.f_hz[schedule])
