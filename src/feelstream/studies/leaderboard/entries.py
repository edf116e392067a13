"""What the leaderboard is made of: its scenarios, and the policies that are entered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from feelstream.experiment import tuning
from feelstream.scenario.files import load

# What docs/leaderboard.md shows, and what its runs change. A test of the accuracy takes as long as several rounds of
# training, so the longer a run is, the less often it is tested.
BOARD: dict[str, tuple[str, ...]] = {
    "paper-3digit": ("learning.eval_every=2",),
    "stress": ("learning.eval_every=4",),
    "long-iid": ("learning.eval_every=20",),
}

ELIGIBLE = ("any", "with_data")
# Entered beside every policy as it comes; K stands for the number of devices.
VARIANTS = (
    "lyapunov(V=auto,cardinality=cap)",
    "oort(alpha=0.0)",
    "best_channel(gain=oracle)",
    "proportional_fair(gain=oracle)",
    "fedcs(size=K)",
    "ocean(power=fixed)",
)
# Those with a weight between energy and learning are entered again at the energy of the first. What lyapunov_joint
# spends hardly depends on its V, so it has no such entry.
WEIGHED = ("lyapunov", "balanced", "ocean")


def entries(source: str | Path, overrides: Sequence[str]) -> list[str]:
    """What a leaderboard enters: every policy, its variants, and those with a weight at the energy of the first.

    That is `lyapunov` with the weight of the scenario. The rule is the same for all: `match_energy`.
    """
    scenario = load(source, overrides)
    variants = [text.replace("=K)", f"={scenario.system.devices})") for text in VARIANTS]
    first = WEIGHED[0]
    reference = load(source, [*overrides, f"policy.name={first}"])
    target_j = tuning.energy_j(reference, tuning.TUNING_SEEDS)
    tuned = []
    for name in WEIGHED[1:]:
        own = load(source, [*overrides, f"policy.name={name}"])
        tuned.append(f"{name}({tuning.weight_of(own)}={tuning.match_energy(own, target_j)!r})")
    return ["all", *variants, *tuned]
