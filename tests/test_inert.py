"""What is read from files runs no code that they name: every kind of plug-in, by every reader, with changes or without.

The runs are made by ours and then forged: run.json and plan.json name a module that leaves a mark when it is imported.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from builders import small
from sealing import seal
from small_plans import in_process

import feelstream as fs
from feelstream.api import Comparison
from feelstream.errors import FeelstreamError, RunError, ScenarioError
from feelstream.experiment import Arm, Plan
from feelstream.experiment import load as load_results
from feelstream.experiment.hindsight import bound_of
from feelstream.plugins import Kind, import_object
from feelstream.report import results_in
from feelstream.run import simulate_in
from feelstream.run.files import write_sealed
from feelstream.scenario.fields import kinds
from feelstream.scenario.files import from_dict, stored_scenario
from feelstream.stored import StoredName
from feelstream.studies import reporting

# Where a scenario names code, by the group of plug-ins; a model is one in all but a group.
PLACES: dict[str, tuple[str, ...]] = {
    **{kind.group: (*path, kind.tag_field) if kind.has_settings else path for path, kind in kinds().items()},
    "models": ("learning", "model"),
}
# A report asks installed studies only; callbacks are given to a call; probes are named by the code of a policy.
NOT_IN_SCENARIOS = {"studies", "callbacks", "probes"}
CHANGES = [
    {"round": 2, "field": "policy.V", "value": 0.3},
    {"round": 3, "field": "policy.size", "value": 3},
    {"round": 4, "field": "system.energy_budget_j", "value": 0.001},
]


def _reads(directory: Path) -> None:
    run = fs.read(directory / "run")
    assert repr(run)
    assert run.summary().height == 1
    assert fs.to_toml(run.scenario)
    changed = run.scenario.with_(rounds=5, **{"system.round_s": 6.0})
    assert changed.as_dict()["learning"] == run.scenario.as_dict()["learning"]


def _verifies(directory: Path) -> None:
    fs.verify(directory / "run")  # what it finds is another matter


def _reports(directory: Path) -> None:
    assert fs.read(directory / "run")._repr_html_()
    assert Comparison(load_results(directory / "results"), directory / "results")._repr_html_()
    for part in ("run", "results"):
        reporting.write(results_in(directory / part), directory / "page")


def _compares(directory: Path) -> None:
    found = Comparison(load_results(directory / "results"), directory / "results")
    assert found.summary().height
    assert found.run("one", 0).scenario.as_dict() == found.results.plan.arm("one").scenario.as_dict()


def _shows(directory: Path) -> None:
    lanes = pytest.importorskip("feelstream.studio.lanes")
    from feelstream.studio import charts, saving
    from feelstream.studio.board import facts
    from feelstream.studio.views import why

    for part in ("run", "results"):
        for lane in lanes.open_runs(lanes.side_by_side([directory / part])):
            for round in range(1, lane.head + 1):
                view = lane.view(round)
                assert why(view, lanes.scenario_at(lane, round))
                assert facts(view, 0)
            assert charts.curves([lane], "energy_mean_cum_j", 3)
            assert saving.scenario_file(lane)
            assert saving.command(lane)


def _explains(directory: Path) -> None:
    """Deciding again is what an explanation with thresholds does; what cannot be decided again is said."""
    run = fs.read(directory / "run")
    for round in (1, 3):
        for device in (0, 1):
            with suppress(FeelstreamError):
                assert str(run.explain(round, device))


def _bounds(directory: Path) -> None:
    with suppress(FeelstreamError):
        bound_of(fs.read(directory / "run"))


def _exports(directory: Path) -> None:
    saving = pytest.importorskip("feelstream.studio.saving")
    saving.write_race([directory / "run"], directory / "race.html", None)


def _follows(directory: Path) -> None:
    """As if it were under way: run.json does not say that it is complete."""
    run = directory / "run"
    seal(run, status="running", digests={}, timings={})
    with suppress(FeelstreamError):
        reporting.write(results_in(run), directory / "page")
    lanes = pytest.importorskip("feelstream.studio.lanes")
    with suppress(FeelstreamError):
        lanes.open_runs(lanes.side_by_side([run]))
    with suppress(FeelstreamError):
        fs.verify(run)


Reader = Callable[[Path], None]
READERS: list[Reader] = [_reads, _verifies, _compares, _shows, _reports, _explains, _bounds, _exports, _follows]
ALL_BUT_POLICIES = [group for group in PLACES if group != "policies"]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and the results of a plan, all ours, as a forger would have them to begin with."""
    directory = tmp_path_factory.mktemp("honest")
    scenario = small("system.rounds=5")
    simulate_in(directory / "run", scenario, 0)
    in_process(Plan("two", (Arm("one", scenario), Arm("other", scenario.with_(V=0.3))), (0,)), directory / "results")
    return directory


class Trap:
    """A module that marks that it was imported, however it is named."""

    def __init__(self, directory: Path) -> None:
        self.mark = directory / "imported"
        self.file = directory / "evil_module_of_a_stored_run.py"
        self.file.write_text(f"open({str(self.mark)!r}, 'w').close()\nclass Evil: ...\n")
        self.names = [f"{self.file}:Evil", f"{self.file.stem}:Evil"]


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trap:
    monkeypatch.syspath_prepend(tmp_path)
    return Trap(tmp_path)


def _forged(honest: Path, directory: Path, change: Callable[[dict[str, Any]], None], changes: list[Any]) -> Path:
    shutil.copytree(honest, directory, dirs_exist_ok=True)
    for run in (directory / "run", *(directory / "results" / "runs").glob("*/")):
        scenario = json.loads((run / "run.json").read_text())["scenario"]
        change(scenario)
        seal(run, scenario=scenario, **({"changes": changes} if changes else {}))
    file = directory / "results" / "plan.json"
    plan = json.loads(file.read_text())
    for arm in plan["arms"]:
        change(arm["scenario"])
    write_sealed(file, {name: value for name, value in plan.items() if name != "sha256"})
    return directory


def _naming(name: str, *groups: str) -> Callable[[dict[str, Any]], None]:
    """A change of a scenario's tables, that puts a name wherever these kinds of plug-ins are named."""

    def change(scenario: dict[str, Any]) -> None:
        for group in groups:
            *sections, field = PLACES[group]
            table = scenario
            for section in sections:
                table = table[section]
            table[field] = [name] if isinstance(table[field], list | tuple) else name

    return change


def test_the_places_are_all_that_a_scenario_has() -> None:
    """Another kind is another field of the scenario, or is known to be out of a scenario's reach."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("feelstream.")]
    groups = {each.group for module in modules for each in vars(module).values() if isinstance(each, Kind)}
    assert {"policies", "metrics", "buffers"} <= groups
    assert groups - NOT_IN_SCENARIOS <= PLACES.keys()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("groups", [["policies"], ALL_BUT_POLICIES], ids=len)
def test_nothing_that_a_stored_file_names_is_imported(
    groups: list[str], reader: Reader, honest: Path, trap: Trap, tmp_path: Path
) -> None:
    for name, changes in zip(trap.names, ([], CHANGES), strict=True):
        reader(_forged(honest, tmp_path / f"forged-{len(changes)}", _naming(name, *groups), changes))
        assert not trap.mark.exists(), (name, changes)


@pytest.mark.parametrize("field", ["policy.name", "policy.metric", "data.partition.kind", "learning.model"])
@pytest.mark.parametrize("reader", READERS[:4])
def test_a_stored_change_cannot_name_code_either(
    field: str, reader: Reader, honest: Path, trap: Trap, tmp_path: Path
) -> None:
    changes = [{"round": 2, "field": field, "value": trap.names[0]}]
    with suppress(RunError):  # to refuse it is as good
        reader(_forged(honest, tmp_path / "forged", lambda scenario: None, changes))
    assert not trap.mark.exists()


def test_an_unknown_field_of_a_stored_scenario_is_not_looked_for_in_code(trap: Trap, tmp_path: Path) -> None:
    tables = small().as_dict()
    tables["learning"] |= {"momentum": 0.5, "local": {"kind": trap.names[0]}}
    with pytest.raises(RunError, match=r"learning\.momentum: there is no such field; allowed: engine"):
        stored_scenario(tables, tmp_path)
    assert not trap.mark.exists()


@pytest.mark.parametrize("changes", [3, [3], [{"round": 2}], [{"round": "x", "field": "policy.V", "value": 1}]])
def test_odd_changes_of_a_stored_run_are_a_sentence_in_the_studio(changes: Any, honest: Path, tmp_path: Path) -> None:
    with pytest.raises(FeelstreamError, match="damaged"):
        _shows(_forged(honest, tmp_path / "forged", lambda scenario: None, changes))


@pytest.mark.parametrize("group", ["metrics", "models"])
def test_a_stored_name_refuses_to_run_until_its_scenario_is_loaded(group: str, trap: Trap, tmp_path: Path) -> None:
    place, name = PLACES[group], f"{trap.file}:nothing"
    tables = small("system.rounds=2", *(["learning.engine=auto"] if group == "models" else [])).as_dict()
    _naming(name, group)(tables)
    stored = stored_scenario(tables, tmp_path).with_(rounds=3)
    with pytest.raises(ScenarioError, match="was read from a stored run"):
        fs.simulate(stored)
    assert not trap.mark.exists()
    assert type(stored.as_dict()[place[0]][place[1]]) is str
    with pytest.raises(ScenarioError, match="has no nothing"):
        fs.simulate(from_dict(stored.as_dict()))
    assert trap.mark.exists()


def test_no_way_to_import_takes_a_stored_name(trap: Trap) -> None:
    kind: Kind[Any] = Kind("test", "tests", object, {"ours": 1}, lambda found: True)
    assert kind.lookup(StoredName("ours")) == 1
    for name in trap.names:
        for take in (kind.lookup, import_object):
            with pytest.raises(ScenarioError, match="was read from a stored run"):
                take(StoredName(name))
    assert not trap.mark.exists()
