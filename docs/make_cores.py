"""Write docs/reference/cores.md from the profiles themselves, so that the page cannot disagree with them.

python docs/make_cores.py
"""

from __future__ import annotations

from pathlib import Path

from feelstream.model.energy import Core
from feelstream.scenario.profiles import our_cores

PAGE = Path(__file__).parent / "reference" / "cores.md"
HEAD = """# Cores

The profiles that `cpu.profile` may name, for [the voltage law](../energy-laws.md#profiles). Facts from the device
trees of Linux 7.1: frequencies are `opp-hz`, voltages the target value of `opp-microvolt`, and $C_{eff}$ is
`dynamic-power-coefficient`, in µW/(MHz·V²), which is pF: the kernel models power as $P = C_{eff} f V^2$. The authors
of a device tree measured or estimated it for one product; other boards, bins and temperatures differ. Made by `python
docs/make_cores.py`.

| profile | core | points | frequency, MHz | voltage, V | C_eff, pF | energy of a cycle, highest / lowest | source |
|---|---|---|---|---|---|---|---|
"""


def page() -> str:
    return HEAD + "".join(f"{_row(*each)}\n" for each in our_cores().items())


def _row(name: str, core: Core) -> str:
    points_hz, points_v = core.points
    ratio = (points_v[-1] / points_v[0]) ** 2
    files = "; ".join(f"`{file}`: {what}" for file, what in _sources(core).items())
    ends = f"{points_hz[0] / 1e6:.0f} – {points_hz[-1] / 1e6:.0f} | {points_v[0]:g} – {points_v[-1]:g}"
    what = f"{core.core} | {len(points_hz)} | {ends} | {core.dynamic_power_coefficient:g}"
    return f"| `{name}` | {what} | {ratio:.2f} | {files} |"


def _sources(core: Core) -> dict[str, str]:
    """What is from which file."""
    found: dict[str, list[str]] = {}
    for line in core.source:
        file, _, what = line.partition(": ")
        found.setdefault(file, []).append(what)
    return {file: ", ".join(what) for file, what in found.items()}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
