"""What is run: policies within the budget, told more or less, against everyone trained in every round.

Seeds 12000 to 12019 are those of the results. Settings were chosen on seeds 100 to 105, 1000 to 1004, 21000 and up;
seeds 3000 to 11019 have shown what was wrong with earlier ones (docs/archive/within-budget.md). Others are new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from feelstream.studies.plans import Arm, Plan, arms, load

FEW, FEWEST = 5, 3  # seeds of what no goal is about, and of a thousand devices


@dataclass(frozen=True)
class Setting:
    """A preset, and what its runs change."""

    preset: str
    changes: tuple[str, ...]


# A test of the accuracy takes as long as several rounds of training, so it is not made in every round.
SCENARIOS: dict[str, Setting] = {
    "paper-3digit": Setting("paper-3digit", ("learning.eval_every=4",)),
    "paper-iid": Setting("paper-iid", ("learning.eval_every=4",)),
    "paper-2digit": Setting("paper-2digit", ("learning.eval_every=4",)),
    "fashion-3digit": Setting("paper-3digit", ("learning.eval_every=4", "data.dataset=fashion-mnist")),
    "stress": Setting("stress", ("learning.eval_every=4",)),
    "har": Setting("har", ("learning.eval_every=10",)),
    "long-iid": Setting("long-iid", ("learning.eval_every=20",)),
}
SERVER = (
    "learning.server.kind=smoothed",
    "learning.server.inner.kind=remembered",
    "learning.server.inner.server_learning_rate=1.4",
)
# A report is of some 40 samples, which take 16,000 cycles each: a third of a per cent of what the paper charges for a
# round of training goes into 40 principal components. Its counts are below 2^10.
REPORTS = (
    "reports.pace=slow", "reports.least_fading=0.1", "reports.slot_s=0.05", "reports.cycles=2e6", "reports.bits=10",
)  # fmt: skip
SKETCH = (*REPORTS, "data.features.kind=sketch", "data.features.cells=30", "data.features.reference_samples=3000")
# Probabilities of a hundred samples: a pass through the model takes 220,000 cycles a sample.
OUTPUTS = (
    *REPORTS, "reports.slot_s=0.2", "reports.cycles=21e6", "reports.bits=16", "data.features.kind=outputs",
    "data.features.every=4",
)  # fmt: skip
OURS = "balanced_joint(size=K)"  # K stands for the number of devices: how many train is left to the budget


@dataclass(frozen=True)
class Way:
    """A policy, what its runs change beside it, and how many seeds it has; None: all."""

    policy: str
    changes: tuple[str, ...] = SERVER
    seeds: int | None = FEW


EVERYONE, FEDAVG, SLOWED = "everyone", "everyone, FedAvg", "everyone, slowed down"
PLAIN = "told labels, FedAvg"
LABELS, LABEL_FREE = "told labels", "told a sketch"
WAYS: dict[str, Way] = {
    EVERYONE: Way("select_all", seeds=None),
    LABELS: Way(OURS, seeds=None),
    LABEL_FREE: Way(OURS, (*SERVER, *SKETCH), seeds=None),
    FEDAVG: Way("select_all", ()),
    SLOWED: Way("lyapunov_joint(size=K)"),
    "told outputs": Way(OURS, (*SERVER, *OUTPUTS)),
    "told outputs, ε = 1": Way(OURS, (*SERVER, *OUTPUTS, "data.features.noise=1.0")),
    "told sizes": Way("balanced_joint(size=K,knows=sizes)"),
    PLAIN: Way(OURS, ()),
}
ON_CORES = (EVERYONE, SLOWED, LABELS, LABEL_FREE)
# A budget pays as many of the cheapest turns as the paper's 0.5 mJ do under λ c f².
_CORE = ("cpu.energy.kind=voltage", "cpu.energy.points=discrete")
CORES = {
    "rk3399-a72": (*_CORE, "cpu.profile=rk3399-a72", "system.energy_budget_j=0.0135"),
    "gs101-x1": (*_CORE, "cpu.profile=gs101-x1", "cpu.frequency_hz=profile", "system.energy_budget_j=0.00739"),
}
ON_TWO = ("paper-3digit", "paper-iid")  # what cores and numbers of devices are tried on
DEVICES = {40: FEW, 120: FEW, 400: FEW, 1000: FEWEST}  # K, with as much band for each, and how many seeds
# With 400 devices: fewer or more devices a round than the rule takes, which are 4.
MORE = ("size=1", "size=2", "size=K,scarcity=0.05", "size=K,scarcity=0", "size=K,scarcity=0,spread=1")


@dataclass(frozen=True)
class Key:
    """One configuration; its label is its name in the results."""

    scenario: str
    way: str

    @property
    def label(self) -> str:
        return f"{self.scenario} / {self.way}"

    @staticmethod
    def of(label: str) -> Key:
        return Key(*label.split(" / "))


def of_devices(scenario: str, devices: int) -> str:
    return f"{scenario}, K = {devices}"


def configurations() -> Iterator[tuple[Key, str, tuple[str, ...], Way]]:
    """Every key with the preset, the changes of its scenario and the way."""
    for name, setting in SCENARIOS.items():
        for way, own in WAYS.items():
            if (name, way) == ("stress", SLOWED):
                continue  # not all devices fit a round, and the slowest set that does is another problem
            yield Key(name, way), setting.preset, setting.changes, own
    for name in ON_TWO:
        setting = SCENARIOS[name]
        for core, changes in CORES.items():
            for way in ON_CORES:
                own = WAYS[way]
                few = Way(own.policy, own.changes)
                yield Key(f"{name} on {core}", way), setting.preset, (*setting.changes, *changes), few
        for devices, seeds in DEVICES.items():
            grown = (*setting.changes, f"system.devices={devices}", f"radio.bandwidth_hz={devices * 5e5}")
            yield Key(of_devices(name, devices), LABELS), setting.preset, grown, Way(OURS, seeds=seeds)
            for fields in MORE if devices == 400 else ():
                yield Key(of_devices(name, devices), fields), setting.preset, grown, Way(f"balanced_joint({fields})")


def plan(seeds: Sequence[int], overrides: Sequence[str] = ()) -> Plan:
    """Every way in every scenario, with the table of devices, which tells who exceeded a budget."""
    found = []
    for key, preset, changes, way in configurations():
        changed = [*changes, *overrides]
        devices = load(preset, changed).system.devices
        [own] = arms(preset, [way.policy.replace("=K", f"={devices}")], [*changed, *way.changes])
        found.append(Arm(key.label, own.scenario, way.seeds))
    return Plan("within-budget", tuple(found), tuple(seeds))
