"""What a device can measure of itself: CPU frequency (psutil) and energy.

A meter is a function without arguments that gives the joules spent so far, from any origin. Those here are RAPL (the
processor), NVML (an NVIDIA graphics card), the battery's gauge, stated watts times seconds, and stated watts times the
seconds that cores were busy; `together` adds several. Each is None where the device has nothing of the kind.
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
BATTERY = Path("/sys/class/power_supply/BAT0")


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


def nvml(index: int = 0) -> Meter | None:
    """A meter on a graphics card's energy counter, of the whole card; needs pynvml, and Volta or newer."""
    try:
        import pynvml  # pyright: ignore[reportMissingImports]

        pynvml.nvmlInit()
        card = pynvml.nvmlDeviceGetHandleByIndex(index)
        pynvml.nvmlDeviceGetTotalEnergyConsumption(card)
    except Exception:  # not installed, no driver, no card, no counter: each has an error of its own
        return None
    return lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(card) * 1e-3


def battery(directory: Path = BATTERY) -> Meter | None:
    """A meter on what a battery has given; it counts in steps of some 10 J or more, so rounds should take minutes.

    While it is being charged the meter runs backwards: then the model is charged, and the log says so.
    """

    def read() -> float:
        if (directory / "energy_now").is_file():
            return -int((directory / "energy_now").read_text()) * 3600e-6  # µWh
        charge, volt = (int((directory / name).read_text()) for name in ("charge_now", "voltage_min_design"))
        return -charge * volt * 3600e-12  # µAh at the voltage that it is meant for

    try:
        read()
    except (OSError, ValueError):
        return None
    return read


def busy_cores(core_w: float, idle_w: float = 0.0) -> Meter | None:
    """A meter by psutil: core_w for every second that a core works for this process or its children, idle_w besides."""
    try:
        import psutil
    except ImportError:
        return None
    process = psutil.Process()

    def read() -> float:
        spent = process.cpu_times()
        busy_s = spent.user + spent.system + spent.children_user + spent.children_system
        return core_w * busy_s + idle_w * perf_counter()

    return read


def together(*several: Meter | None) -> Meter | None:
    """The sum of those that are there, as of processor and graphics card; None where none is."""
    found = [meter for meter in several if meter is not None]
    return (lambda: sum(meter() for meter in found)) if found else None


NAMED: dict[str, Callable[[], Meter | None]] = {"rapl": rapl, "nvml": nvml, "battery": battery}


def named(name: object) -> tuple[str, Meter | None]:
    """The meter that node-config `meter` asks for; a name that joins several by +, as rapl+nvml, is their sum."""
    parts = str(name).lower().split("+")
    if not set(parts) <= NAMED.keys():
        raise FeelstreamError(
            f"node-config meter must be one of {', '.join(NAMED)}, or several joined by +, not {name!r:.40}"
        )
    found = [NAMED[part]() for part in parts]
    if None in found:
        return f"the model, since there is no {parts[found.index(None)]} here", None
    return "+".join(part.upper() if part != "battery" else part for part in parts), together(*found)


def best(power_w: object = None, wanted: object = None) -> tuple[str, Meter | None]:
    """The meter that a device has, and its name: the wanted one, else its stated power, else RAPL, else none."""
    if wanted is not None:
        return named(wanted)
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
