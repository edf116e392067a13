"""What a device can measure of itself: CPU frequency (psutil) and energy (RAPL, or its power times the seconds).

A battery's charge is read in whole per cents, which is far too coarse for one round, so there is no battery meter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import perf_counter

from feelstream.errors import FeelstreamError

Meter = Callable[[], float]  # joules spent so far, from any origin

SetFrequency = Callable[[float], AbstractContextManager[object]]
CPUFREQ = Path("/sys/devices/system/cpu")
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


def constant_power(power_w: object) -> Meter:
    """A meter that takes the device's power for constant: joules are W × seconds."""
    if isinstance(power_w, bool) or not isinstance(power_w, int | float) or not 0 < power_w < float("inf"):
        raise FeelstreamError(f"node-config power-w must be the device's power in watts, not {power_w!r}")
    return lambda: power_w * perf_counter()


def best(power_w: object = None) -> tuple[str, Meter | None]:
    """The meter that a device has, and its name: its stated power if there is one, else RAPL, else none."""
    if power_w is not None:
        return f"power-w = {power_w}", constant_power(power_w)
    found = rapl()
    return ("the model", None) if found is None else ("RAPL", found)


def given(meter: Meter | None) -> tuple[str, Meter | None]:
    """A meter of the app's own, and its name."""
    return ("the model", None) if meter is None else (getattr(meter, "__name__", "the app's own")[:40], meter)


@contextmanager
def at_frequency(f_hz: float, directory: Path = CPUFREQ) -> Iterator[bool]:
    """Hold all CPUs at most at f_hz meanwhile, by cpufreq; False where there is none or it may not be written."""
    before: dict[Path, str] = {}
    try:
        with suppress(OSError):
            for file in sorted(directory.glob("cpu[0-9]*/cpufreq/scaling_max_freq")):
                old = file.read_text()
                file.write_text(f"{round(f_hz / 1e3)}\n")  # cpufreq counts in kHz
                before[file] = old
        yield bool(before)
    finally:
        for file, old in before.items():
            with suppress(OSError):
                file.write_text(old)
