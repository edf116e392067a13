"""Code is known by its file and what that imports from beside it; what has no file is taken for no other code."""

from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import devices_of, small
from restarted import restart
from small_plans import in_process
from stopped import stop_in

import feelstream as fs
from feelstream import code
from feelstream.code import named_files, without_file
from feelstream.errors import RunError, ScenarioError
from feelstream.experiment import Arm, Plan, worker
from feelstream.run import simulate_in
from feelstream.scenario import Scenario

MINE = """
import feelstream as fs
{before}
class Mine(fs.Policy):
    def select(self, state, observation, rng):
        {within}
        plan = observation.plan(1)
        ids = plan.feasible.nonzero()[0]
        return fs.Decision(ids[:1] if {uses} > 1 else ids[-1:], plan)
"""
HELPERS = {"helper_of_mine.py": "from deeper_of_mine import W\n", "deeper_of_mine.py": "W = 1.0\n"}


def mine(uses: str, before: str = "", within: str = "pass") -> str:
    return MINE.format(before=before, within=within, uses=uses)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that modules are imported from, and forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    restart(tmp_path)


def written(directory: Path, files: dict[str, str]) -> None:
    """With the same times as ever: of the same size, Python itself would run what it compiled of them before."""
    for name, text in files.items():
        (directory / name).write_text(text)
        os.utime(directory / name, ns=(10**18, 10**18))
    importlib.invalidate_caches()


def chosen(scenario: Scenario) -> set[int]:
    return set(devices_of(fs.simulate(scenario, 1)).filter("scheduled")["device"].to_list())


# How code is named: by its path, as a module, as an object of a script.
def by_path(directory: Path) -> Scenario:
    return small(f"policy.name={directory / 'mine_of_test.py'}:Mine")


def by_module(directory: Path) -> Scenario:
    return small("policy.name=mine_of_test:Mine")


def in_script(directory: Path) -> Scenario:
    return as_main(directory / "mine_of_test.py", (directory / "mine_of_test.py").read_text())


NAMED: list[Callable[[Path], Scenario]] = [by_path, by_module, in_script]
# What is different in the text: mine_of_test.py, the files beside it, the old text and the new one.
CASES: dict[str, tuple[str, dict[str, str], str, str]] = {
    "method": (mine("1.0"), {}, "1.0", "2.0"),
    "constant": (mine("W", "W = 1.0\n"), {}, "1.0", "2.0"),
    "comment": (mine("1.0") + "# first\n", {}, "first", "second"),
    "module beside": (mine("helper_of_mine.W", "import helper_of_mine\n"), HELPERS, "1.0", "2.0"),
    "name from beside": (mine("W", "from helper_of_mine import W\n"), HELPERS, "1.0", "2.0"),
    "imported when called": (mine("W", within="from helper_of_mine import W"), HELPERS, "1.0", "2.0"),
}


def as_main(file: Path | None, text: str, cells: list[str] | None = None) -> Scenario:
    """The policy that a script or a notebook defines; only within a test that gives `__main__` back."""
    main: Any = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if file:
        main.__file__ = str(file)
    if cells is not None:
        main.In = ["", *cells]
    exec(compile(text, str(file) if file else "<cell>", "exec"), vars(main))
    return small().with_(policy=main.Mine())


@pytest.fixture
def own_main(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.mark.usefixtures("own_main")
@pytest.mark.parametrize("named", NAMED)
@pytest.mark.parametrize("case", CASES)
def test_another_text_is_other_code(
    there: Path, named: Callable[[Path], Scenario], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", named is not by_path)  # which takes nothing from what was compiled
    text, files, old, new = CASES[case]
    found: list[dict[str, str]] = []
    who: list[set[int]] = []
    for now in (old, new):
        restart(there)
        every = {"mine_of_test.py": text, **files}
        written(there, {name: content.replace(old, now) for name, content in every.items()})
        found.append(named_files(named(there)))
        who.append(chosen(named(there)))
    assert (0 in who[1] - who[0]) == (5 in who[0] - who[1]) == (case != "comment"), "the new text is what is run"
    restart(there)
    assert found[0].keys() == found[1].keys()
    assert len(found[0]) == 1 + len(files)
    assert found[0] != found[1]
    assert named_files(named(there)) == found[1], "the same files are the same code"
    assert without_file(named(there)) == []


@pytest.mark.usefixtures("own_main")
@pytest.mark.parametrize("edited", ["mine_of_test.py", "helper_of_mine.py", "deeper_of_mine.py"])
@pytest.mark.parametrize("named", NAMED)
def test_a_file_that_was_edited_since_it_was_loaded_is_refused(
    there: Path, named: Callable[[Path], Scenario], edited: str
) -> None:
    written(there, {"mine_of_test.py": mine("W", "from helper_of_mine import W\n"), **HELPERS})
    scenario = named(there)
    before = named_files(scenario)
    simulate_in(there / "run", scenario)
    (there / edited).write_text((there / edited).read_text() + "# edited\n")
    for play in (lambda: fs.simulate(scenario), lambda: simulate_in(there / "run", scenario)):
        with pytest.raises(ScenarioError, match=rf"{edited} changed after it was loaded; start Python .* again"):
            play()
    assert named_files(scenario) == before, "what is in memory"
    again = fs.compare([scenario], seeds=1, workers=1, out=there / "compared")
    assert [f"{edited} changed after it was loaded" in failure.reason for failure in again.failures] == [True]
    restart(there)
    with pytest.raises(RunError, match="holds a run with other files"):
        simulate_in(there / "run", named(there))


@pytest.mark.usefixtures("own_main")
@pytest.mark.parametrize("named", NAMED)
def test_so_is_one_that_was_edited_before_its_first_run(there: Path, named: Callable[[Path], Scenario]) -> None:
    """Else the old code's numbers would be stored as those of the new file."""
    written(there, {"mine_of_test.py": mine("1.0")})
    scenario = named(there)
    (there / "mine_of_test.py").write_text(mine("2.0"))
    with pytest.raises(ScenarioError, match="changed after it was loaded"):
        fs.simulate(scenario)


def test_a_function_is_known_by_its_file_too(there: Path) -> None:
    files = {"measure_of_test.py": "from deeper_of_mine import W\ndef least(amount, dissimilarity):\n    return W\n"}
    for name in (f"{there / 'measure_of_test.py'}:least", "measure_of_test:least"):
        restart(there)
        written(there, HELPERS | files)
        scenario = small(f"policy.metric={name}")
        (there / "deeper_of_mine.py").write_text("W = 2.0\n")
        assert set(named_files(scenario)) == {name, f"{name} > deeper_of_mine.py"}
        with pytest.raises(ScenarioError, match=r"deeper_of_mine\.py changed after it was loaded"):
            fs.simulate(scenario)


@pytest.mark.parametrize("kind", ["learning.model", "learning.evaluators", "learning.local.kind"])
def test_so_is_each_kind_of_function_that_learning_names(there: Path, kind: str) -> None:
    text = "def made(shape=1, classes=1):\n    ...\ndef train(module, sampler, round, state, generator):\n    ...\n"
    written(there, {"learns_of_test.py": text})
    name = "learns_of_test:" + ("train" if "local" in kind else "made")
    assert set(named_files(small(f"{kind}={[name] if 'evaluators' in kind else name}"))) == {name}


def test_a_module_that_was_imported_before_is_imported_anew_by_a_file_that_is_named(there: Path) -> None:
    """It may have been edited in between, and nobody has seen what it held."""
    written(there, HELPERS | {"mine_of_test.py": mine("W", "from deeper_of_mine import W\n")})
    imported = importlib.import_module("deeper_of_mine")
    (there / "deeper_of_mine.py").write_text("W = 2.0\n")
    sizes = by_path(there).policy.select.__globals__["W"]  # type: ignore[attr-defined]
    assert (imported.W, sizes) == (1.0, 2.0)


@pytest.mark.parametrize("level", ["full", "rounds"])
def test_a_plan_never_mixes_two_versions_of_its_code(
    level: str, there: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that a policy imports is edited after the first run: a worker that has loaded it goes on with that, and
    one that begins later fails with a sentence. The next call plays all of it with the file as it is then."""
    written(there, {"mine_of_test.py": mine("W", "from helper_of_mine import W\n"), **HELPERS})
    plan = Plan("plan", (Arm("mine", by_path(there).with_(**{"trace.level": level})),), tuple(range(4)))
    calls, told = iter(range(8)), list[int]()
    play = worker.play

    def edited_before(*work: Any) -> Any:
        told.append(len(caplog.messages))
        if (call := next(calls)) == 1:
            (there / "deeper_of_mine.py").write_text("W = 2.0\n")
        if call == 2:
            restart(there)
        return play(*work)

    monkeypatch.setattr(worker, "play", edited_before)
    results = in_process(plan, there / "out")
    assert len(results.finished) == 2
    assert all("mine.py changed while the plan was under way" in failure.reason for failure in results.failures)
    again = in_process(plan, there / "out")
    assert not again.failures
    assert caplog.messages == ["2 stored runs are played again, since deeper_of_mine.py has changed"]
    assert told == [0] * 4 + [1] * 4, "said before"
    files = {tuple(again.run("mine", seed).manifest.files.items()) for seed in range(4)}
    assert len(files) == 1


CELLS = ["import feelstream as fs", "W = 1.0", mine("W"), "run = fs.simulate(…)"]


@pytest.mark.usefixtures("own_main")
def test_a_finished_run_of_a_notebook_is_never_used_again(tmp_path: Path) -> None:
    scenario = as_main(None, "W = 1.0\n" + CELLS[2], CELLS)
    simulate_in(tmp_path / "run", scenario)
    with pytest.raises(RunError, match="a finished run of __main__:Mine, which has no file"):
        simulate_in(tmp_path / "run", scenario)
    for count in (1, 2):
        fs.compare([scenario, "random"], scenario, seeds=1, rounds=3, out=tmp_path / "out")
        names = [path.name for path in (tmp_path / "out" / "runs").iterdir()]
        assert sum(name.startswith("mine-") for name in names) == count
        assert sum(name.startswith("random-") for name in names) == 1


@pytest.mark.usefixtures("own_main")
@pytest.mark.parametrize(
    ("cells", "goes_on"),
    [
        (CELLS, True),
        ([*CELLS, CELLS[-1]], True),  # interrupted, and the same cell once more
        ([CELLS[0], "W = 2.0", *CELLS[2:]], False),
        ([*CELLS[:3], "W = 2.0", CELLS[3]], False),
        (None, False),  # `python -c`: nobody knows what was run
    ],
)
def test_an_unfinished_run_of_a_notebook_goes_on_after_the_same_cells(
    cells: list[str] | None, goes_on: bool, tmp_path: Path
) -> None:
    text = "W = 1.0\n" + CELLS[2]
    stop_in(tmp_path / "run", as_main(None, text, cells and CELLS), at=4)
    scenario = as_main(None, text, cells)
    if goes_on:
        played: list[Any] = []
        simulate_in(tmp_path / "run", scenario, progress=played.append)
        assert played[0].observation.round == 4
    else:
        with pytest.raises(RunError, match="other files"):
            simulate_in(tmp_path / "run", scenario)


@pytest.mark.usefixtures("own_main")
def test_what_a_notebook_imports_from_its_directory_counts(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(there)
    written(there, HELPERS)
    cells = ["from helper_of_mine import W", mine("W")]
    found = named_files(as_main(None, "\n".join(cells), cells))
    assert {name.rpartition(" > ")[2] for name in found} == {"__main__:Mine", *HELPERS}


@pytest.mark.usefixtures("own_main")
def test_what_is_typed_in_beside_a_script_is_not_of_its_file(tmp_path: Path) -> None:
    """After `python -i script.py`, or by `exec` of a text from elsewhere."""
    script = tmp_path / "script.py"
    script.write_text(mine("1.0"))
    scenario = as_main(script, mine("1.0"))
    assert without_file(scenario) == []
    exec(compile(mine("2.0"), "<stdin>", "exec"), vars(sys.modules["__main__"]))
    typed = scenario.with_(policy=sys.modules["__main__"].Mine())
    assert without_file(typed) == ["__main__:Mine"]


POLICY = "import library\nimport own.numbers\nfrom own import words\nfrom . import near\n"


@pytest.mark.parametrize(("place", "others"), [("project", ["library.py", "further.py"]), ("some-packages", [])])
def test_only_an_installed_package_does_not_bring_its_neighbours(place: str, others: list[str], tmp_path: Path) -> None:
    root = tmp_path / place
    (root / "own").mkdir(parents=True)
    own = {"own/__init__.py": "", "own/policy.py": POLICY, **{f"own/{name}.py": "" for name in ("numbers", "near")}}
    written(root, {**own, "own/words.py": "", "own/alone.py": "", "library.py": "import further\n", "further.py": ""})
    found = code.with_imported([root / "own" / "policy.py"])
    assert {file.relative_to(root).as_posix() for file in found} == {*own, "own/words.py", *others}
    assert root / "own" / "__init__.py" in code.with_imported([root / "own" / "alone.py"]), (
        "it is run before the module"
    )
    written(root, {"policy.py": "import library\n"})
    assert (root / "library.py" in code.with_imported([root / "policy.py"])) == bool(others)
