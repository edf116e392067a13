"""What a device can measure of itself: CPU frequency (psutil) and energy (RAPL), where it has them.

A battery's charge is read in whole per cents, which is far too coarse for one round, so there is no battery meter.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Meter = Callable[[], float]  # joules spent so far, from any origin

RAPL = Path("/sys/class/powercap/intel-rapl:0")


def cpu_frequency_hz() -> float | None:
    """The present CPU frequency, or None where psutil is not installed or the system does not tell."""
    try:
        import psutil

        reading = psutil.cpu_freq()
    except (ImportError, OSError, NotImplementedError, AttributeError):
        return None
    return reading.current * 1e6 if reading is not None and reading.current > 0 else None


def rapl(directory: Path = RAPL) -> Meter | None:
    """A meter on the processor package's energy counter, or None where there is none or it may not be read.

    The counter starts over at its range; a meter read more often than it does so goes on counting.
    """
    try:
        span_j = int((directory / "max_energy_range_uj").read_text()) * 1e-6
        last_j = int((directory / "energy_uj").read_text()) * 1e-6
    except (OSError, ValueError):
        return None
    total_j = 0.0

    def read() -> float:
        nonlocal last_j, total_j
        now_j = int((directory / "energy_uj").read_text()) * 1e-6
        total_j += (now_j - last_j) % span_j if now_j < last_j else now_j - last_j
        last_j = now_j
        return total_j

    return read
