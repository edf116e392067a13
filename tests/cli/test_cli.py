"""The command line: what it prints, and one sentence with exit code 2 for everything that is wrong."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from commands import QUICK, Command, check_one_sentence
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


SETTINGS = {  # override: what the sentence must say
    "system.devices=0": "system.devices: must be at least 1, not 0",
    "system.devices=many": "system.devices: must be a whole number, not 'many'",
    "system.round_s=nan": "system.round_s: must be a finite number",
    "system.round_s='4'": "system.round_s: must be a number, not '4'",
    "system.round_s=0.2": "system.round_s: no update can ever fit a round of 0.2 s",
    "system.energy_budget_j=[1, 2]": "system.energy_budget_j: must be one number or a list of 10, one per device",
    "system.energy_budget_j=[1, 'x']": "system.energy_budget_j[1]: must be a number",
    "system.device=3": "system.device: there is no such field; did you mean 'devices'?",
    "system.devices.x=3": "system.devices.x: there is no such field",
    "cpu.frequency_hz=[2e9, 1e9]": "cpu.frequency_hz: must be [lowest, highest]",
    "cpu.frequency_hz=[1e9]": "cpu.frequency_hz[1] is missing",
    "cpu.frequency_hz=[1, 1e90]": "cpu.power_coefficient: computing for a round must take at most 1e+100 J",
    "cpu.cycles=1e30": "system.round_s: no update can ever fit",
    "radio.gain_db=[3, -5]": "radio.gain_db: must be [lowest, highest]",
    "radio.bandwidth_hz=1e-90": "radio.received_power_dbm: the mean SNR over the whole band",
    "radio.fading=rice": "radio.fading: must be 'rayleigh' or 'none', not 'rice'",
    "radio.admission=all": "radio.admission: must be 'paper' or 'largest'",
    "data.dataset=minst": "data.dataset: 'minst' is not known; did you mean 'mnist'?",
    "data.dataset=missing.npz": "missing.npz is not there",
    "data.fresh=today": "data.fresh: must be 'since_use' or 'per_round'",
    "data.partition.kind=idd": "data.partition.kind: 'idd' is not known; did you mean 'iid'?",
    "data.partition.alpha=1": "data.partition.alpha: there is no such field in iid",
    "data.arrivals.kind=trace": "data.arrivals.path is missing",
    "partition=minority(share=1.0)": "data.partition.share: must be less than 1",
    "partition=minority(labels=[])": "data.partition.labels: must be a list of at least 1",
    "partition=minority(labels=[1, 1])": "data.partition.labels: every label may be listed once",
    "partition=dirichlet(alpha=0)": "data.partition.alpha: must be at least 0.001",
    "data.buffer.kind=lifo": "data.buffer.kind: 'lifo' is not known; did you mean 'fifo'?",
    "policy.name=lyapunow": "policy.name: 'lyapunow' is not known; did you mean 'lyapunov'?",
    "policy.name=os:path": "policy.name: 'os:path' is not a class; it must be one derived from feelstream.Policy",
    "policy.W=1": "policy.W: there is no such field in lyapunov; allowed: name, size, V, cardinality, metric",
    "policy.size=11": "policy.size: must be at most system.devices = 10, not 11",
    "policy.cardinality=any": "policy.cardinality: must be 'exact', 'cap' or 'free'",
    "policy.metric=amout": "policy.metric: 'amout' is not known; did you mean 'amount'?",
    "policy=3": "policy.name: '3' is not known; allowed: lyapunov",
    "v=1": "there is no field 'v'; did you mean 'V'?",
    "buffer.rounds=5": "data.buffer.rounds: there is no such field in keep",
    "policy.V": "'policy.V' must read section.field=value",
    "=3": "'=3' must read section.field=value",
    "trace.level=all": "trace.level: must be 'full' or 'rounds'",
}


@pytest.mark.parametrize("override", SETTINGS)
def test_a_wrong_setting(override: str, feelstream: Command) -> None:
    check_one_sentence(feelstream("run", "tiny", *QUICK, "--set", override), SETTINGS[override])


FILES: dict[str, tuple[bytes, str]] = {
    "not TOML": (b"system = {", "is not a TOML file"),
    "not UTF-8": (b"# caf\xe9\n", "it is not UTF-8 text"),
    "unknown table": (b"[radar]\nrange = 1\n", "radar: there is no such field; did you mean 'radio'?"),
    "not a table": (b"system = 3\n", "system: must be a table of fields, not 3"),
    "a date": (b"[system]\nround_s = 1979-05-27\n", "system.round_s: must be a number"),
    "a name that is no text": (b"[policy]\nname = 3\n", "policy.name: must be one of lyapunov"),
    "an unknown policy": (b'[policy]\nname = "best"\nV = 1\n', "policy.name: 'best' is not known"),
    "twice": (b"[system]\nrounds = 1\nrounds = 2\n", "is not a TOML file"),
    "too small a list": (b"[system]\nenergy_budget_j = []\n", "system.energy_budget_j: must be one number or a list"),
    "a field one table up": (b"[learning]\nmomentum = 0.5\n", "did you mean 'learning.local.momentum'?"),
    "a field without its table": (b"V = 0.1\n", "V: there is no such field; did you mean 'policy.V'?"),
    "a very long value": (b'[system]\nrounds = "' + b"x" * 10000 + b'"\n', "system.rounds: must be a whole number"),
}


@pytest.mark.parametrize("wrong", FILES)
def test_a_wrong_file(wrong: str, feelstream: Command) -> None:
    content, told = FILES[wrong]
    Path("my.toml").write_bytes(content)
    check_one_sentence(feelstream("run", "my.toml"), told)


LINES: dict[str, tuple[list[str], str]] = {
    "no scenario": (["run"], "Missing argument 'SCENARIO'"),
    "no seed": (["run", "tiny", "--seed"], "'--seed'"),
    "no threads": (["run", "tiny", "--threads", "0"], "--threads: must be a whole number"),
    "nothing to set": (["run", "tiny", "--set"], "'--set'"),
    "out is a file": (["run", "tiny", *QUICK, "--out", "file"], "cannot use the directory file: it is a file"),
    "out is below a file": (["run", "tiny", *QUICK, "--out", "file/a"], "cannot use the directory file/a"),
    "out is full": (["run", "tiny", *QUICK, "--out", "."], "is not empty and not a run directory"),
    "verify no directory": (["verify", "absent"], "absent is not a run directory"),
    "verify no run": (["verify", "."], "neither it nor a directory in it has a run.json"),
    "unknown data": (["data", "get", "cifar"], "'cifar' cannot be fetched; allowed are mnist, fashion-mnist"),
    "unknown model": (["run", "tiny", "--set", "learning.model=sofmax"], "learning.model: 'sofmax' is not known; did"),
    "model not there": (["run", "tiny", "--set", "learning.model=no.such:Net"], "learning.model: 'no.such:Net' cannot"),
    "no model at all": (
        ["run", "tiny", "--set", "learning.model=bad.py:number"],
        "must be an nn.Module class, a Model",
    ),
    "trace not there": (
        ["run", "tiny", *QUICK, "--set", "data.arrivals.kind=trace", "--set", "data.arrivals.path=absent.csv"],
        "data.arrivals.path: absent.csv is not a file",
    ),
    "trace of text": (
        ["run", "tiny", *QUICK, "--set", "data.arrivals.kind=trace", "--set", "data.arrivals.path=bad.csv"],
        "bad.csv has no column",
    ),
    "npz without labels": (["run", "tiny", *QUICK, "--set", "data.dataset=half.npz"], "half.npz has no array y_train"),
    "npz of text": (["run", "tiny", *QUICK, "--set", "data.dataset=text.npz"], "text.npz: the file cannot be read"),
    "policy with a slip": (["run", "tiny", *QUICK, "--set", "policy.name=slip.py:Mine"], "SyntaxError"),
    "policy that fails": (["run", "tiny", *QUICK, "--set", "policy.name=fails.py:Mine"], "ZeroDivisionError"),
    "a metric of numbers": (["run", "tiny", *QUICK, "--set", "policy.metric=bad.py:number"], "does not fulfil"),
    "too many devices": (["run", "tiny", *QUICK, "--set", "system.devices=2000000000"], "not enough memory"),
}


@pytest.mark.parametrize("wrong", LINES)
def test_a_wrong_command_line(wrong: str, feelstream: Command) -> None:
    Path("file").write_text("")
    Path("bad.csv").write_text("a,b\n1,2\n")
    np.savez("half.npz", x_train=np.zeros((2, 3, 3), np.uint8))
    Path("text.npz").write_text("text")
    Path("slip.py").write_text("class Mine(:\n")
    Path("fails.py").write_text("1 / 0\n")
    Path("bad.py").write_text("number = 3\n")
    arguments, told = LINES[wrong]
    if wrong == "too many devices":
        # Really asking for the memory might succeed on a large machine.
        arguments = [*arguments[:-1], "system.devices=11"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("feelstream.run.preparing.Simulation", _out_of_memory)
            check_one_sentence(feelstream(*arguments), told)
        return
    check_one_sentence(feelstream(*arguments), told)


def _out_of_memory(*arguments: object) -> None:
    raise MemoryError


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
