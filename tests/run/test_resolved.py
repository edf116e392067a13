"""What a run states of its settings: numbers that hold, for simulations, deployments and changes alike."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from builders import small
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from second_resolver import second

import feelstream as fs
from feelstream.columns import CONSTANTS, budget_column
from feelstream.loop.changes import as_list, in_order
from feelstream.run.manifest import Manifest
from feelstream.run.resolving import resolved
from feelstream.scenario.profiles import core


def test_one_number_for_all_or_a_column_of_a_table(tmp_path: Path) -> None:
    alike = fs.simulate(small(), 1, out=tmp_path / "alike")
    assert alike.constants is None
    assert not (tmp_path / "alike" / CONSTANTS).exists()
    assert alike.manifest.resolved.alike["cycles"] == alike.scenario.cpu.cycles
    assert Manifest.read(tmp_path / "alike").resolved == alike.manifest.resolved
    classes = [{"share": 0.5, "priority": 2.0}, {"share": 0.5, "energy_budget_j": 0.5}]
    run = fs.simulate(small().with_(**{"devices.classes": classes}), 1, out=tmp_path / "run")
    assert run.constants is not None
    budgets = [run.scenario.system.energy_budget_j] * 3 + [0.5] * 3
    assert run.constants.to_dict(as_series=False) == {
        "device": list(range(6)), "priority": [2.0] * 3 + [1.0] * 3, "energy_budget_j": budgets,
    }  # fmt: skip
    assert pl.read_parquet(tmp_path / "run" / CONSTANTS).equals(run.constants)
    assert CONSTANTS in run.manifest.digests
    again = fs.read(tmp_path / "run").constants
    assert again is not None
    assert again.equals(run.constants)


POLICIES = st.sampled_from(
    [
        *(
            {"name": "lyapunov", "V": V, "cardinality": size}
            for V in (0.05, "auto")
            for size in ("exact", "cap", "free")
        ),
        *({"name": name} for name in ("lyapunov_joint", "balanced_joint", "ocean", "select_all", "age", "random")),
    ]
)
SOMETIMES = {
    "costs.download_bits": st.just(2e6),
    "costs.receive_power_w": st.just(0.2),
    "radio.power_max_w": st.floats(1.0, 5.0),
    "radio.block_bits": st.just(1e5),
    "data.buffer": st.sampled_from([{"kind": "fifo", "capacity": 4}, {"kind": "use_once"}]),
    "world.harvest": st.just({"kind": "packets", "capacity_j": 5.0, "start": 0.25}),
    "world.mobility": st.just({"kind": "random_direction"}),
    "world.availability": st.just({"kind": "markov"}),
    "world.faults": st.just({"kind": "random"}),
    "cpu.energy": st.sampled_from([{"kind": "voltage"}, {"kind": "voltage", "points": "discrete", "leakage_w": 0.1}]),
}
CLASS = st.fixed_dictionaries(
    {"share": st.just(0.5)},
    optional={
        "priority": st.floats(0.5, 2.0),
        "energy_budget_j": st.floats(0.01, 0.5),
        "power_max_w": st.floats(1.0, 5.0),
        "download_bit_per_s": st.floats(1e7, 1e8),
        "gain_db": st.just([-4.0, 2.0]),
        "profile": st.just("rk3399-a53"),
    },
)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    policy=POLICIES,
    more=st.fixed_dictionaries({}, optional=SOMETIMES),
    classes=st.one_of(st.none(), st.tuples(CLASS, CLASS)),
    budget_j=st.one_of(st.floats(0.01, 1.0), st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6)),
    changed=st.dictionaries(st.sampled_from(["V", "size", "energy_budget_j"]), st.integers(1, 3)),
    table=st.booleans(),
)
def test_a_second_resolver_comes_to_the_same(
    policy: dict, more: dict, classes: tuple | None, budget_j: float, changed: dict, table: bool
) -> None:
    """For classes of devices, a table of some, profiles, worlds, laws and changes on the way."""
    fields = more | {"policy": policy | {"size": 2}, "system.energy_budget_j": budget_j, "system.rounds": 4}
    if "cpu.energy" in more:
        fields |= {"cpu.profile": "rk3399-a72", "cpu.frequency_hz": "profile"}
    elif classes:
        classes = tuple({name: value for name, value in each.items() if name != "profile"} for each in classes)
    with TemporaryDirectory() as place:
        if classes or table:
            pl.DataFrame({"device": [4, 1], "priority": [3.0, 0.5]}).write_csv(f"{place}/some.csv")
            fields |= {"devices.classes": classes or ()} | ({"devices.table": f"{place}/some.csv"} if table else {})
        try:
            scenario = small().with_(**fields)
            each = [fs.Change(2 + n, field, now) for n, (field, now) in enumerate(changed.items())]
            changes = in_order(scenario, each)
        except fs.FeelstreamError:
            reject()
        found, table_of = resolved(scenario, 10, changes)
        differing = {} if table_of is None else {name: table_of[name].to_numpy() for name in table_of.columns}
        listed, named = as_list(scenario, changes), [name for name in scenario.profiles.names if name]
        cores = {name: core(name).model_dump() for name in named}
        came_to, constants = second(json.loads(json.dumps(scenario.as_dict())), 10, listed, cores)
    stated = found.model_dump()
    alike, phases = stated.pop("alike"), stated.pop("phases")
    budgets = {budget_column(phase["first"]): phase.pop("energy_budget_j") for phase in phases}
    by_device = [laws.pop("cores") for laws in (stated["law"], came_to["law"])]
    assert _near(stated | {"phases": phases}, came_to)
    which = [np.full(6, alike["core"]) if "core" in alike else differing["core"], constants["core"]]
    if by_device[0]:  # in whatever order
        assert _near(*([cores[int(k)] for k in of] for cores, of in zip(by_device, which, strict=True)))
    for name, values in constants.items():
        if name == "core":
            continue
        one = budgets.get(name, alike.get(name))
        said = np.full(6, float(one)) if one is not None else differing[name]
        slack = ROUNDING if name.startswith("beta") else 1e-12
        np.testing.assert_allclose(said, values, rtol=slack, err_msg=name)


ROUNDING = 1e-6  # of a decibel, that mean gains which move may miss the range by


def _near(left: object, right: object) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        assert left.keys() == right.keys()
        for name in left:
            assert _near(left[name], right[name]), (name, left[name], right[name])
        return True
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_near, left, right))
    return left == (pytest.approx(right) if isinstance(right, float) else right)
