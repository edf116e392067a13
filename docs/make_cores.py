"""Write the table of docs/energy-laws.md from the profiles themselves, so that the page cannot disagree with them.

python docs/make_cores.py
"""

from __future__ import annotations

import re
from pathlib import Path

from feelstream.model.energy import Core
from feelstream.scenario.population import our_cores

PAGE = Path(__file__).with_name("energy-laws.md")
HEADER = "| profile | core | points | frequency, MHz | voltage, V | C_eff, pF | energy, highest / lowest | source |"


def page(text: str) -> str:
    """The page with its table made again; what is written around it stays."""
    rows = "\n".join([HEADER, "|---|---|---|---|---|---|---|---|", *(_row(*each) for each in our_cores().items())])
    return re.sub(r"(\n## Profiles\n.*?\n\n)(\|[^\n]*\n)+", lambda found: f"{found[1]}{rows}\n", text, flags=re.DOTALL)


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
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
