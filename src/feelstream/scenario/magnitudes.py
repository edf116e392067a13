"""Numbers that are too large or too small together, though no single field is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from feelstream.errors import ScenarioError
from feelstream.model import physics
from feelstream.model.energy import Cubic

if TYPE_CHECKING:
    from feelstream.scenario.settings import Scenario


def check_magnitudes(scenario: Scenario) -> None:
    """Keep energies and SNR within what can be squared, summed and divided without overflow."""
    radio, population, least, most = scenario.radio, scenario.population, 1e-100, 1e100
    power_w = physics.watts(radio.received_power_dbm)
    system = scenario.known_system(classes=1)
    ends = (population.frequency_low_hz, population.frequency_high_hz)
    computing_j = max(float(system.compute_energy_j(f_hz).max()) for f_hz in ends)
    if not computing_j <= most:
        field = "power_coefficient" if isinstance(scenario.cpu.energy, Cubic) else "energy"
        raise ScenarioError(f"cpu.{field}: computing for a round must take at most {most:g} J, not {computing_j:g} J")
    lowest_db = scenario.gain_range_db[0]
    sending_j = power_w / physics.ratio(lowest_db) * scenario.system.round_s
    if sending_j > most:
        raise ScenarioError(
            f"radio.received_power_dbm: sending for a round must take at most {most:g} J, but takes "
            f"{sending_j:g} J at a gain of {lowest_db:g} dB"
        )
    snr = power_w / (radio.bandwidth_hz * radio.noise_w_per_hz)
    if not least <= snr <= most:
        raise ScenarioError(
            f"radio.received_power_dbm: the mean SNR over the whole band must be between {least:g} and {most:g}, "
            f"not {snr:g}"
        )
