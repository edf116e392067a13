"""Paths as Sionna gives them, without Sionna: for a test that replaces `sionna_paths.drawn` and `versions`."""

from __future__ import annotations

import numpy as np

from feelstream.environment.base import Links

PATHS, RICIAN_K = 12, 8.0  # waves of a device; the direct path over all others
VERSIONS = {"sionna-no-rt": "0.0.stand-in", "torch": "0.0.stand-in"}


def drawn(links: Links, ids: np.ndarray, samples: int, sample_s: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Plane waves of equal power from all around, one more from the station for those that are seen; mean power 1."""
    rng, many = np.random.default_rng(seed), len(ids)
    angle, phase = rng.uniform(0, 2 * np.pi, (2, many, PATHS + 1))
    angle[:, 0] = np.arctan2(*-links.position_m[::-1, ids])
    direct = np.where(links.seen[ids], RICIAN_K / (RICIAN_K + 1), 0.0)
    power = np.column_stack([direct, *np.broadcast_to((1 - direct) / PATHS, (PATHS, many))])
    speed = links.velocity_m_s[0, ids, None] * np.cos(angle) + links.velocity_m_s[1, ids, None] * np.sin(angle)
    time_s = np.arange(samples) * sample_s
    turned = 2 * np.pi * links.carrier_hz / 299792458.0 * speed[:, :, None] * time_s + phase[:, :, None]
    delay_s = rng.exponential(1e-7, (many, PATHS + 1))
    delay_s[:, 0] = 0
    return np.sqrt(power)[:, :, None] * np.exp(1j * turned), delay_s
