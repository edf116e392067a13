"""What compare_trees.py has run in each tree: cases and workloads as data, and the process that runs them.

    python -P tree_runs.py names                    plug-ins and presets of this tree, as JSON
    python -P tree_runs.py tables CASES FOLDER      every case of a JSON file, into FOLDER/NUMBER
    python -P tree_runs.py speed WORKLOAD FOLDER    CPU time of a workload in s

Only what users may rely on is imported from feelstream, so that the same file serves an older tree and a newer one.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SEEDS = (0, 1)
FEW = ("lyapunov", "random", "balanced_joint", "update_norm")
LEARNING = ("system.rounds=8", "learning.eval_every=3")
LONGER = ("system.rounds=20", "learning.eval_every=10")  # after LEARNING, for choices that take time to show
SHORTENED = {"theorem": ("system.rounds=200",), "million": ("system.rounds=3",)}  # others: LEARNING
CROWD = (
    "system.devices=2000", "system.rounds=4", "data.samples=20000", "policy.size=40", "radio.bandwidth_hz=4e8",
    "learning.engine=none",
)  # fmt: skip
STREAMS = {"finite": (), "endless": ("data.arrivals.kind=poisson", "data.arrivals.rate=12")}
ORDERS = ("label", "label_from_any", "label_ascending", "label_random", "shuffled", "markov")
RECORDED = ("data.dataset=hapt", "system.devices=30")

PROCESSES = ("frequency", "channel", "mobility", "availability", "harvest", "faults")
PLACES = {  # the field that names a plug-in of this kind; policies have cases of their own
    "metric": "policy.metric",
    "evaluator": "learning.evaluators",
    "partition": "data.partition.kind",
    "arrivals": "data.arrivals.kind",
    "buffer": "data.buffer.kind",
    "features": "data.features.kind",
    "energy law": "cpu.energy.kind",
    "cost": "costs.rule.kind",
    "local_training": "learning.local.kind",
    "server_update": "learning.server.kind",
    **{kind: f"world.{kind}.kind" for kind in PROCESSES},
}
# What a plug-in needs beside its name, or without which its rule would not show in so short a run.
NEEDED = {
    ("partition", "natural"): RECORDED,
    ("arrivals", "recorded"): (*RECORDED, "data.partition.kind=natural", "data.arrivals.speed=fit"),
    ("arrivals", "trace"): ("data.arrivals.path=arrivals.csv",),
    ("buffer", "window"): ("data.buffer.rounds=3",),
    ("buffer", "fifo"): ("data.buffer.capacity=30",),
    ("buffer", "reservoir"): ("data.buffer.capacity=30",),
    ("features", "sketch"): ("data.features.cells=12",),
    ("energy law", "voltage"): ("cpu.profile=rk3288-a12", "cpu.frequency_hz=profile"),
    ("frequency", "trace"): ("world.frequency.path=frequencies.csv",),
    ("channel", "tr38901"): ("world.mobility.kind=tr38901",),
    ("availability", "trace"): ("world.availability.path=availability.csv",),
    ("server_update", "limited"): ("learning.server.times=1.0",),
    ("server_update", "inverse_probability"): ("policy.name=random",),
    ("server_update", "trimmed_mean"): ("policy.size=5",),
    ("server_update", "median"): ("policy.size=5",),
    ("server_update", "gaussian"): ("learning.server.clip=0.5", "learning.server.noise=0.1"),
}
OPTIONS = [  # of policies
    "lyapunov V=auto", "lyapunov V=inf", "lyapunov cardinality=cap", "lyapunov cardinality=free",
    "lyapunov_joint V=inf", "lyapunov_joint cardinality=cap", "lyapunov_joint cardinality=free",
    "lyapunov_joint power_max_w=0.5", "balanced price=auto", "balanced_joint pace=running",
    "balanced_joint knows=sizes", "balanced_joint size=10", "proportional_fair gain=oracle", "best_channel gain=last",
    "best_channel gain=oracle", "ocean eta=uniform", "ocean power=fixed", "myopic_energy budget=static",
    "fedcs share=0.5", "fedbacys groups=2", "update_norm candidates=5", "gradient_norm rho=0.9",
    "importance_greedy metric=amount",
]  # fmt: skip
LOCAL = [
    "epochs=1", "sampling=epoch", "schedule=step every=3", "schedule=cosine floor=0.1", "schedule=inverse every=3",
    "momentum=0.9", "momentum=0.9 nesterov=true", "momentum=0.9 keep=momentum", "keep=scaffold", "prox=0.1",
    "weight_decay=0.01", "clip=0.5",
]  # fmt: skip
SERVER = [
    "kind=remembered discount=1.0", "kind=trimmed_mean trim=0.4", "kind=gaussian receiver=0.01",
    "kind=quantise bits_each=4", "kind=top_k fraction=0.05 feedback=false", "kind=top_k inner.kind=median",
    "kind=smoothed inner.kind=limited inner.inner.kind=remembered",
]  # fmt: skip
CLASSES = (
    "devices.classes=[{share=0.4, cycles=2e8, priority=2.0, deadline_s=2.5, arrivals=0.5}, {share=0.6, "
    'profile="rk3288-a12", frequency_hz="profile", power_max_w=1.0, download_bit_per_s=1e6, energy_budget_j=0.1}]'
)
LOSSES = "radio.block_bits=300000 radio.received_power_dbm=-36 radio.link_margin=1.0 system.rounds=16"
SETTINGS = [  # on `tiny` and `stress`, with each of CROSSED
    CLASSES, "devices.table=devices.csv system.devices=10", LOSSES, f"{LOSSES} world.faults.kind=random",
    "world.harvest.kind=packets world.harvest.capacity_j=2.0 world.harvest.packet_j=0.3",
    "world.harvest.kind=solar world.harvest.day=6 world.harvest.peak_j=0.6 world.harvest.capacity_j=1.0",
    "world.faults.kind=random system.reliability=ignored", "radio.link_margin=1.0", "radio.received_power_dbm=-38",
    "radio.admission=largest radio.received_power_dbm=-38 policy.size=8 system.rounds=30", "radio.rate_discount=0.8",
    "radio.fading=none", "radio.power_max_w=0.8", "radio.update_bits=auto cpu.cycles=auto", "costs.download_bits=6e7",
    "costs.download_bits=6e7 costs.receive_power_w=0.5", "costs.cycles_per_sample=3e6",
    "costs.cycles_per_sample=3e6 data.eligible=with_data", "data.empty_used=vector data.empty_fresh=vector",
    "cpu.energy.kind=voltage cpu.profile=rk3399-a72 cpu.frequency_hz=profile cpu.energy.points=discrete",
    "cpu.energy.kind=voltage cpu.profile=rk3399-a72 cpu.energy.leakage_w=0.2", "data.fresh=per_round",
    "world.mobility.kind=random_direction world.channel.kind=jakes",
    "world.availability.kind=markov world.availability.p_leave=0.6", "data.buffer.kind=use_once data.fresh=per_round",
]  # fmt: skip
CROSSED = ("lyapunov", "lyapunov_joint", "balanced_joint", "update_norm", "oort")
OTHERS = [  # on `tiny`
    'learning.evaluators=["test","stream","devices","classes"]', "data.normalise=none", "trace.level=rounds",
    "data.partition.kind=digits data.partition.per_device=2 data.partition.sizes=equal",
    "data.partition.kind=dirichlet data.partition.alpha=0.1", "data.arrivals.bounds=clip data.arrivals.sigma=0.3",
    "policy.name=update_norm reports.slot_s=1.0 reports.samples=8 reports.bits=3200.0", "learning.model=mlp",
    "policy.name=gradient_norm reports.cycles=2e8", "learning.engine=torch",
    "learning.engine=torch learning.local.prox=0.1 learning.local.momentum=0.5",
    f"policy.name={EXAMPLES}/my_policy.py:Rested", f"policy.name={EXAMPLES}/my_allocation.py:FinishTogether",
    f"policy.name={EXAMPLES}/my_probe.py:Uneven", f"policy.metric={EXAMPLES}/my_metric.py:product",
    f"data.arrivals.kind={EXAMPLES}/my_arrivals.py:Daily", f"data.buffer.kind={EXAMPLES}/my_buffer.py:Newest",
    f"costs.rule.kind={EXAMPLES}/my_cost.py:Sparse", f'learning.evaluators=["{EXAMPLES}/my_evaluator.py:Records"]',
    f'learning.evaluators=["test", "{EXAMPLES}/my_evaluator.py:gap"]',
]  # fmt: skip
CHANGES = {
    "V": ((4, "V", 0.2), (7, "V", 0.001)),
    "size": ((3, "size", 4), (6, "size", 1)),
    "budget": ((4, "system.energy_budget_j", 0.02),),
    "all": ((4, "V", 0.2), (4, "size", 3), (5, "system.energy_budget_j", 0.2)),
}


@dataclass(frozen=True)
class Case:
    """A run of a preset with some fields changed."""

    name: str
    preset: str
    overrides: tuple[str, ...]
    seed: int = 0
    changes: tuple[tuple[int, str, Any], ...] = ()


@dataclass(frozen=True)
class Workload:
    """One long run, of which the rounds after the first count, or several runs, of which all counts."""

    preset: str
    overrides: tuple[str, ...]
    runs: int = 1

    @property
    def counted(self) -> str:
        return f"{self.runs} runs into fresh directories, after one" if self.runs > 1 else "rounds after the first"


WORKLOADS = {
    "K = 10, no learning": Workload("tiny", ("learning.engine=none", "system.rounds=30000")),
    "K = 10^6": Workload("million", ("system.rounds=150",)),
    "100 runs, no learning": Workload("paper-iid", ("learning.engine=none",), 100),
    "16 runs, learning": Workload("paper-iid", ("learning.eval_every=10",), 16),
}


def cases(names: dict[str, list[str]], quick: bool) -> list[Case]:
    """All cases, by seed; of an earlier tree's plug-ins and presets, since each must also be in the later one."""
    found = [*presets(names, quick), *plugins(names), *settings()]
    return [
        Case(f"{case.name}, seed {seed}", case.preset, case.overrides, seed, case.changes)
        for seed in (SEEDS[:1] if quick else SEEDS)
        for case in found
    ]


def presets(names: dict[str, list[str]], quick: bool) -> Iterator[Case]:
    """Every preset with every policy, as far as it is not too long for that."""
    thorough = ("tiny", "paper-3digit", "stress") if quick else [each for each in names["preset"] if each != "million"]
    for preset in names["preset"]:
        for policy in names["policy"] if preset in thorough else FEW:
            shortened = SHORTENED.get(preset, LEARNING)
            yield Case(f"preset {preset}, {policy}", preset, (*shortened, f"policy.name={policy}"))


def plugins(names: dict[str, list[str]]) -> Iterator[Case]:
    for kind, place in PLACES.items():
        for name in names.get(kind, []):  # a kind that the earlier tree has not
            chosen = f'{place}=["{name}"]' if kind == "evaluator" else f"{place}={name}"
            fields = (*LEARNING, *NEEDED.get((kind, name), ()), chosen)
            streams = STREAMS if kind in ("buffer", "partition") else {"": ()}
            for stream, arrivals in streams.items():
                yield Case(f"{kind} {name} {stream}".rstrip(), "tiny", (*arrivals, *fields))
            if place.startswith("world."):
                for policy in CROSSED[1:]:
                    yield Case(f"{kind} {name}, {policy}", "tiny", (*fields, f"policy.name={policy}"))
    for policy in names["policy"]:
        yield Case(f"crowd, {policy}", "tiny", (*CROWD, f"policy.name={policy}"))


def settings() -> Iterator[Case]:
    for (stream, arrivals), order in product(STREAMS.items(), ORDERS):
        yield Case(f"{stream} order={order}", "tiny", (*LEARNING, *arrivals, f"data.arrivals.order={order}"))
    for preset in ("tiny", "stress"):
        for option in OPTIONS:
            policy, field = option.split()
            yield Case(
                f"{preset} {option}",
                preset,
                (*LEARNING, *LONGER, f"policy.name={policy}", f"policy.{field}"),
            )
        for words, policy in product(SETTINGS, CROSSED):
            fields = ("policy.name=" + policy, *separate(words))
            yield Case(f"{preset} {words}, {policy}", preset, (*LEARNING, *fields))
    for preset in ("tiny", "paper-3digit"):
        for section, choices in (("local", LOCAL), ("server", SERVER)):
            for words in choices:
                fields = [f"learning.{section}.{field}" for field in words.split()]
                yield Case(f"{preset} {section} {words}", preset, (*LEARNING, "policy.size=5", *fields))
    for words in OTHERS:
        yield Case(words.replace(f"{EXAMPLES}/", ""), "tiny", (*LEARNING, *separate(words)))
    for name, changes in CHANGES.items():
        yield Case(f"changes of {name}", "tiny", ("system.rounds=10",), changes=changes)


def separate(words: str) -> list[str]:
    """The settings in a text; a list is one, with its spaces."""
    return [words] if "[" in words else words.split()


def play(listed: Path, folder: Path) -> None:
    """Run the cases of a file; what became of each is written at once, so that a crash leaves what came before it."""
    import feelstream as fs

    chosen = json.loads(listed.read_text())
    with (folder / "said.jsonl").open("w") as said:
        for done, (number, case) in enumerate(chosen, start=1):
            refused = failed = ""
            try:
                scenario = fs.preset(case["preset"], case["overrides"])
                changes = [fs.Change(*change) for change in case["changes"]]
                fs.simulate(scenario, case["seed"], out=folder / str(number), threads=1, changes=changes)
            except fs.FeelstreamError as problem:
                refused = str(problem)
            except Exception:
                failed = traceback.format_exc()
            print(json.dumps([number, refused, failed]), file=said, flush=True)
            if not done % 100:
                print(f"  {folder.name}: {done} of {len(chosen)}", flush=True)


def seconds(workload: Workload, folder: Path, quick: bool) -> float:
    """CPU time without what comes before the first round or run has ended."""
    import feelstream as fs

    scenario = fs.preset(workload.preset, [*workload.overrides, *(["system.rounds=3"] if quick else [])])
    ends: list[float] = []
    if workload.runs == 1:
        fs.simulate(scenario, threads=1, progress=lambda record: ends.append(process_time()))
    else:
        for seed in range(workload.runs + 1):
            fs.simulate(scenario, seed, out=folder / str(seed), threads=1)
            ends.append(process_time())
    return ends[-1] - ends[0]


def names() -> dict[str, list[str]]:
    import feelstream as fs
    from feelstream.testing.kinds import KINDS

    kinds = {name: getattr(kind, "registry", kind) for name, kind in KINDS.items()}  # another state's may hold one
    return {name: list(kind.ours) for name, kind in kinds.items()} | {"preset": list(fs.presets())}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["names"]:
            print(json.dumps(names()))
        case ["tables", listed, folder]:
            play(Path(listed), Path(folder))
        case ["speed", workload, folder, *quick]:
            print(seconds(WORKLOADS[workload], Path(folder), bool(quick)))
        case _:
            sys.exit(__doc__)
