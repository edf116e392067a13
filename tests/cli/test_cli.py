"""The command line: what it prints, and one sentence with exit code 2 for everything that is wrong."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import polars as pl
import pytest
from commands import QUICK, Command, check_one_sentence, invoked
from sealing import seal

import feelstream as fs
from feelstream.policies import POLICIES
from feelstream.scenario.files import from_dict
from feelstream.terminal.common import out as console


def test_run_verify_and_run_again(feelstream: Command) -> None:
    code, out, _ = feelstream("run", "tiny", *QUICK, "--seed", "7", "--set", "system.rounds=5", "--out", "runs/a")
    assert code == 0
    assert "dropped at admission" in out
    assert "runs/a" in out
    assert fs.read("runs/a").scenario == fs.preset("tiny", ["learning.engine=none", "system.rounds=5"])
    code, out, _ = feelstream("verify", "runs/a")
    assert (code, "every stored value that can be recomputed agrees" in out) == (0, True)
    code, out, _ = feelstream("verify", "runs/a", "--json")
    assert code == 0
    assert json.loads(out)["ok"] is True
    code, _, _ = feelstream("run", "tiny", *QUICK, "--seed", "7", "--set", "system.rounds=5", "--out", "runs/a")
    assert code == 0


def test_verify_finds_a_changed_value(feelstream: Command) -> None:
    feelstream("run", "tiny", *QUICK, "--out", "a")
    run = fs.read("a")
    run.rounds.with_columns(queue_mean_j=run.rounds["queue_mean_j"] * 1.01).write_parquet("a/rounds.parquet")
    code, _, err = feelstream("verify", "a")
    assert (code, "rounds.parquet is damaged or was changed: its SHA-256" in err) == (2, True)
    seal(Path("a"))
    code, out, _ = feelstream("verify", "a")
    assert code == 1
    assert "queue_mean_j" in out


def test_verify_can_play_the_run_again(feelstream: Command) -> None:
    feelstream("run", "tiny", *QUICK, "--out", "a")
    code, out, _ = feelstream("verify", "a", "--replay")
    assert (code, "devices.parquet and rounds.parquet are the same bytes" in " ".join(out.split())) == (0, True)
    run = fs.read("a")
    assert run.devices is not None
    idle = (~run.devices["scheduled"]).arg_true()[0]  # nothing follows from the channel of who does not send
    gain = run.devices["gain"].to_list()
    gain[idle] *= 1.5
    run.devices.with_columns(pl.Series("gain", gain)).write_parquet("a/devices.parquet")
    seal(Path("a"))
    code, out, _ = feelstream("verify", "a", "--replay")
    row = run.devices.row(int(idle), named=True)
    assert code == 1
    assert f"DIFFERS: devices.parquet, round {row['round']}, device {row['device']}, gain" in " ".join(out.split())


def test_an_interrupted_run_says_how_to_go_on(feelstream: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(record: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("feelstream.api.simulating.note", interrupt)
    code, _, err = feelstream("run", "tiny", *QUICK, "--out", "a")
    assert code == 130
    assert "goes on where this one stopped" in err
    monkeypatch.undo()


def test_lists(feelstream: Command) -> None:
    code, out, _ = feelstream("presets")
    assert code == 0
    assert all(name in out for name in fs.presets())
    code, out, _ = feelstream("presets", "paper-iid", "--set", "policy.V=0.2")
    assert from_dict(tomllib.loads(out)) == fs.preset("paper-iid", ["policy.V=0.2"])
    code, out, _ = feelstream("policies")
    assert code == 0
    assert "lyapunov" in out
    assert "cardinality" in out
    code, out, _ = feelstream("--version")
    assert out.strip() == f"feelstream {fs.__version__}"


def test_every_argument_says_what_it_is(feelstream: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for command, words in {
        "run": "A preset's name or a TOML file.",
        "compare": "A preset's name or a TOML file.",
        "flower run": "A preset's name or a TOML file.",
        "leaderboard": "Presets or TOML files",
        "verify": "The run directory",
        "report": "Results of a study or of compare",
        "presets": "The preset to print",
        "data get": "The data set",
        "reproduce": "Which figure to make",
        "check": "The plug-in: file.py:Name",
    }.items():
        code, out, _ = feelstream(*command.split(), "--help")
        assert code == 0
        assert words in out, command


def test_the_list_of_policies_has_hanging_indents(feelstream: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_width", 60)
    _, out, _ = feelstream("policies")
    assert "\n    cardinality = exact (exact: `size` devices; cap: at most\n        `size`" in out
    assert all(len(line) <= 60 for line in out.splitlines())
    starts = {line.split(":")[0] for line in out.splitlines() if line and not line.startswith(" ")}
    assert starts == set(POLICIES.names())


def test_a_file_that_may_not_be_read(feelstream: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by hand, since tests may run as a user who may read everything."""
    Path("my.toml").write_text("")

    def refuse(*arguments: object, **options: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr("feelstream.scenario.files.presets", dict)
    check_one_sentence(feelstream("run", "my.toml"), "cannot read the scenario my.toml: Permission denied")


@pytest.mark.parametrize("words", [("--debug", "run"), ("run", "--debug")])
def test_debug_shows_where_the_error_of_a_plug_in_came_up(words: tuple[str, ...], feelstream: Command) -> None:
    Path("divides.py").write_text(
        "from feelstream.model.energy import EnergyLaw\n"
        "class Divides(EnergyLaw):\n"
        "    def energy_j(self, cpus, cycles, f_hz):\n"
        "        return 1 / 0\n"
    )
    code, _, err = feelstream(*words, "tiny", *QUICK, "--set", "cpu.energy=divides.py:Divides")
    assert code == 2
    assert 'divides.py", line 4, in energy_j' in err
    said = err.splitlines()[-1]
    assert said.startswith("feelstream: cpu.energy: 'divides.py:Divides' failed: ZeroDivisionError")
    check_one_sentence(feelstream("run", "tiny", *QUICK, "--set", "cpu.energy=divides.py:Divides"), said[12:])


def test_nothing_asked_shows_the_help(feelstream: Command) -> None:
    code, out, err = feelstream()
    assert code == 2
    assert "Commands" in out + err
    assert "Traceback" not in err


def test_bound_says_how_far_a_run_is_from_the_best(feelstream: Command) -> None:
    fields = ("--set", "learning.engine=none", "--set", "data.fresh=per_round")
    assert feelstream("run", "tiny", "--out", "run", *fields)[0] == 0
    code, shown, _ = feelstream("explain", "run", "--bound")
    assert code == 0
    assert "gap" in shown
    found = json.loads(feelstream("explain", "run", "--bound", "--json")[1])
    assert 0 <= found["gained"] <= found["with_its_energy"]
    assert found["gap"] == pytest.approx(1 - found["gained"] / found["with_its_energy"])
    assert "is not a run directory" in feelstream("explain", "nothing", "--bound")[2]


def said(*words: str) -> str:
    return " ".join(invoked(*words).output.split())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("queue_j", "queue_j (devices.parquet, J): Q_k before the round"),
        ("scheduled", "scheduled (rounds.parquet): |Π*|, devices that trained"),
        ("battery_j", "charge before the round; only with batteries"),
        ("policy.V", "policy.V: weight of importance against energy"),
        ("lr", "learning rate"),
        ("fairness", "Jain's index"),
        ("random", "`size` feasible devices, all equally likely"),
    ],
)
def test_a_name_is_explained(name: str, words: str) -> None:
    assert words in said("explain", name)


def test_without_a_name_it_says_what_can_be_asked() -> None:
    assert "A field (policy.V), a column" in " ".join(invoked("explain", code=2).output.split())


def test_the_first_run_keeps_its_budget_and_one_that_does_not_is_told_what_would() -> None:
    assert "× the budget" not in said("run", "tiny")
    exceeding = said("run", "tiny", "--set", "system.energy_budget_j=0.0005", "--set", "learning.engine=none")
    assert "× the budget; why: docs/how-to/budget.md" in exceeding
    assert "within the budget: --set policy.name=balanced_joint" in exceeding


def test_a_budget_that_carries_no_turn_is_told_with_its_numbers() -> None:
    idle = said("run", "tiny", "--rounds", "2", "--set", "policy.name=balanced_joint", "--set",
                "system.energy_budget_j=1e-6", "--set", "learning.engine=none")  # fmt: skip
    assert "nobody trained in any round. Round 2, device" in idle
    assert "of its budget is left" in idle
