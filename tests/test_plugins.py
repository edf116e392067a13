"""Names in a scenario become objects: ours, or a user's own."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pytest
from builders import small

import feelstream as fs
from feelstream.errors import RunError, ScenarioError
from feelstream.plugins import import_object
from feelstream.policies import POLICIES, Random
from feelstream.run import simulate_in
from feelstream.scenario.files import from_dict


def test_our_policies_keep_their_names_however_they_are_called() -> None:
    scenario = fs.preset("tiny", ["policy.name=feelstream.policies.random:Random"])
    assert scenario.as_dict()["policy"]["name"] == "random"


def test_a_policy_that_only_lives_here_can_play_in_a_directory(tmp_path: Path) -> None:
    class Here(Random):
        tag: ClassVar[str] = ""

    scenario = small().with_(policy=Here(size=1))
    assert simulate_in(tmp_path, scenario).rounds["scheduled"].max() == 1
    with pytest.raises(RunError, match="Here, which has no file that says all of what it does"):
        simulate_in(tmp_path, scenario)
    stored = fs.read(tmp_path).scenario
    assert stored.as_dict() == scenario.as_dict()
    assert stored.policy.size == 1
    with pytest.raises(ScenarioError, match=r"Here' was read from a stored run, and reading runs no code"):
        fs.simulate(stored)
    with pytest.raises(ScenarioError, match=r"policy\.name: .*Here"):
        from_dict(stored.as_dict())


def test_a_policy_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    """Two directories with a helper of the same name: each policy has its own."""
    sizes = {}
    for directory, size in (("one", 1), ("two", 2)):
        home = tmp_path / directory
        home.mkdir()
        (home / "rule_helper.py").write_text(f"SIZE = {size}\n")
        (home / "mine.py").write_text(
            "import rule_helper\nimport feelstream as fs\nfrom feelstream.policies.random import Random\n\n"
            "class Mine(fs.Policy):\n    size: int = rule_helper.SIZE\n    select = Random.select\n"
        )
        sizes[directory] = from_dict({**small().as_dict(), "policy": {"name": f"{home / 'mine.py'}:Mine"}}).policy.size
    assert sizes == {"one": 1, "two": 2}


def test_an_installed_policy_that_cannot_be_loaded_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(**wanted: str) -> list[EntryPoint]:
        point = EntryPoint("theirs", "no_such_module:Theirs", "feelstream.policies")
        return [point] if wanted.get("name", "theirs") == "theirs" and "policies" in wanted["group"] else []

    monkeypatch.setattr("feelstream.plugins.entry_points", installed)
    assert "theirs" in POLICIES.names()
    with pytest.raises(ScenarioError, match=r"policy\.name: 'theirs' cannot be imported: ModuleNotFoundError"):
        small("policy.name=theirs")


def test_a_module_is_imported_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Outer:\n    class Inner:\n        pass\n")
    assert import_object(f"{tmp_path}/mine.py:Outer.Inner") is import_object(f"{tmp_path}/mine.py:Outer").Inner
    assert import_object("feelstream.policies:Lyapunov") is fs.policies.Lyapunov


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        ("class Thing:\n    pass\n", "Thin", r"has no Thin; did you mean 'Thing'\?"),
        (
            "class Thing: ...\n",
            "Thing",
            r"is not derived from feelstream.Policy; write class Thing\(",
        ),
        ("import feelstream as fs\nclass Thing(fs.Policy): ...\n", "Thing", "lacks select, which every class of"),
        ("class Thing(:\n", "Thing", r"cannot be imported: SyntaxError: .*line 1"),
        ("\nprice = 1 / 0\n", "Thing", r"cannot be imported: ZeroDivisionError: division by zero \(mine.py, line 2\)"),
        ("raise SystemExit\n", "Thing", r"cannot be imported: SystemExit"),
        ("import no_such_module\n", "Thing", r"cannot be imported: ModuleNotFoundError"),
        (b"\xff\xfe", "Thing", r"cannot be imported: SyntaxError"),
        (None, "Thing", r"there is no file"),
    ],
)
def test_a_users_broken_file_is_told_in_a_sentence(
    content: str | bytes | None, name: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ScenarioError, match=rf"^policy\.name: .*{told}") as problem:
        small(f"policy.name={path}:{name}")
    assert "\n" not in str(problem.value)


def test_a_broken_file_can_be_mended_and_used(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("class Thing(:\n")
    with pytest.raises(ScenarioError):
        import_object(f"{path}:Thing")
    path.write_text("class Thing:\n    mended = True\n")
    assert import_object(f"{path}:Thing").mended


@pytest.mark.parametrize("name", POLICIES.names())
def test_every_policy_has_a_name_a_line_and_described_fields(name: str) -> None:
    policy = POLICIES.lookup(name)
    assert policy.plugin_name() == name
    assert (policy.__doc__ or "").strip()
    assert all(field.description for field in policy.model_fields.values())
