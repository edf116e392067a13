"""What the attacks came to: as text, as the table of docs/archive/soaks.md, and as files that can be added up."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

TITLES = {
    "scenarios": "scenarios",
    "budgets": "budgets kept",
    "damage": "damaged files",
    "inputs": "odd input",
    "policies": "wrong policies",
    "replies": "malicious replies",
    "io": "failing disk",
    "kills": "SIGKILL",
    "signals": "SIGINT, SIGTERM",
    "groups": "… to the group",
}
SHOWN = 20  # losses that are printed


@dataclass(frozen=True)
class Counts:
    attack: str
    tried: int
    survived: int
    refused: int
    lost: list[str]
    slowest_s: float | None = None  # from a signal to the end of the process

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        return self.tried, self.survived, self.refused, len(self.lost)


def write(path: Path, counts: list[Counts]) -> None:
    path.write_text(json.dumps([asdict(each) for each in counts], indent=2) + "\n", encoding="utf-8")


def read(path: Path) -> list[Counts]:
    return [Counts(**each) for each in json.loads(path.read_text(encoding="utf-8"))]


def added(several: list[list[Counts]], order: list[str]) -> list[Counts]:
    """The sum by attack, in the order of their names."""
    sums = []
    for name in order:
        parts = [each for counts in several for each in counts if each.attack == name]
        if not parts:
            continue
        tried, survived, refused = (sum(each.numbers[i] for each in parts) for i in range(3))
        lost = [loss for each in parts for loss in each.lost]
        slowest_s = max((each.slowest_s for each in parts if each.slowest_s is not None), default=None)
        sums.append(Counts(name, tried, survived, refused, lost, slowest_s))
    return sums


def as_text(counts: list[Counts]) -> str:
    lines = [f"{'attack':<17}{'tried':>9}{'survived':>10}{'refused':>9}{'lost':>6}"]
    for each in counts:
        tried, survived, refused, lost = each.numbers
        lines.append(f"{TITLES[each.attack]:<17}{tried:>9,}{survived:>10,}{refused:>9,}{lost:>6,}")
    lines += [_slowest(each) for each in counts if each.slowest_s is not None]
    lines += [f"lost, {each.attack}: {loss}" for each in counts for loss in each.lost[:SHOWN]]
    return "\n".join(lines)


def as_markdown(counts: list[Counts]) -> str:
    rows = [f"| {TITLES[each.attack]} | {' | '.join(f'{n:,}' for n in each.numbers)} |" for each in counts]
    head = ["| attack | tried | survived | refused | lost |", "|---|---:|---:|---:|---:|"]
    last = [f"\n{_slowest(each)}" for each in counts if each.slowest_s is not None]
    return "\n".join([*head, *rows, *last]) + "\n"


def _slowest(counts: Counts) -> str:
    return f"The slowest process ended {counts.slowest_s:.1f} s after SIGINT or SIGTERM."
