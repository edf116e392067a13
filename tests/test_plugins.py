"""Names in a scenario become objects: ours, or a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import feelstream as fs
from builders import small
from feelstream.errors import ScenarioError
from feelstream.plugins import import_object
from feelstream.policies import POLICIES
from feelstream.run import simulate_in

STATEFUL = f"{Path(__file__).parent / 'stateful.py'}:Patient"


def test_a_policy_of_ones_own_from_a_file(tmp_path: Path) -> None:
    scenario = small(f"policy.name={STATEFUL}", "policy.size=1")
    run = simulate_in(tmp_path, scenario)
    assert run.rounds["scheduled"].max() == 1
    assert fs.read(tmp_path).scenario == scenario
    assert STATEFUL in fs.to_toml(scenario)
    assert fs.verify(tmp_path).ok


def test_a_policy_of_ones_own_as_an_object() -> None:
    policy = POLICIES.lookup(STATEFUL)(size=1)
    run = fs.simulate(small().model_copy(update={"policy": policy}))
    assert run.about["scenario"]["policy"] == {"name": STATEFUL, "size": 1}


def test_a_module_is_imported_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Thing:\n    pass\n")
    assert import_object(f"{tmp_path}/mine.py:Thing") is import_object(f"{tmp_path}/mine.py:Thing")
    assert import_object("feelstream.policies:Lyapunov") is fs.policies.Lyapunov


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        ("class Thing:\n    pass\n", "Other", r"has no Other"),
        ("class Thing:\n    pass\n", "Thing", r"is not one of the policies"),
        ("class Thing(:\n", "Thing", r"cannot be imported: SyntaxError: .*line 1"),
        ("\nprice = 1 / 0\n", "Thing", r"cannot be imported: ZeroDivisionError: division by zero \(mine.py, line 2\)"),
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
