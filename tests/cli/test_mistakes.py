"""What people type in their first ten minutes and should not have: each gets one sentence that says what to type."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import QUICK, Command, check_one_sentence

import feelstream as fs

MISTAKES = {  # command line: what the sentence must say
    # options
    "compare tiny --policy": "--policy",
    "compare tiny --policies lyapunov,random": "there is no option --policies; did you mean '--policy'? see",
    "compare tiny --policy lyapunov random": "put commas between policies, as in --policy lyapunov,random",
    "compare tiny lyapunov random": "put commas between policies, as in --policy lyapunov,random",
    "compare tiny --policy random --seeds 0": "--seeds: must be a whole number from 1 to 100000, not 0",
    "compare tiny --policy random --seeds 1,2,3": "--seeds: must be a whole number from 1 to 100000, not 1,2,3",
    "run tiny --seeds 3": "there is no option --seeds; did you mean '--seed'?",
    "run tiny -s 3": "there is no option -s; see feelstream run --help",
    "run tiny --model cnn": "there is no option --model; a field is set with --set, as in --set model=VALUE",
    "run tiny --V 0.1": "there is no option --V; a field is set with --set, as in --set V=VALUE",
    "run tiny --policy.V 0.1": "as in --set policy.V=VALUE",
    "run tiny V=0.1": "a field is set with --set and without spaces, as in --set V=0.1",
    "run tiny --set V 0.1": "'0.1' belongs to no option; a field is set with --set and without spaces",
    "run tiny --set V = 0.1": "'= 0.1' belongs to no option; a field is set with --set and without spaces",
    "run tiny --set V=0,1": "policy.V: must be a number or 'auto', not '0,1'",
    "run tiny --set seed=3": "there is no field 'seed'; a seed is given beside the scenario, by --seed or --seeds",
    "compare tiny --vary seed=1,2": "a seed is given beside the scenario, by --seed or --seeds",
    "run tiny --seed 1.5": "--seed: must be a whole number from 0 to 9223372036854775807, not 1.5",
    "run tiny --rounds 1000000000000": "system.rounds: must be at most 2147483647",
    "run tiny --set learning.momentum=0.5": "there is no such field; did you mean 'learning.local.momentum'?",
    "compare tiny --policy random --vary learning.momentum=0,0.5": "did you mean 'learning.local.momentum'?",
    "run tiny --change 3": "'3' must read round:section.field=value, for instance 12:policy.V=0.2",
    "run tiny --change 30:V=0.1": "policy.V: must change in a round from 1 to 10, not 30",
    "run tiny --change 3:rounds=4": "rounds: cannot change during a run",
    "run tiny --log tensorbord": "--log: 'tensorbord' is not one of 'tensorboard', 'mlflow', 'wandb'; see",
    "studio --port 0": "--port: must be a whole number from 1 to 65535, not 0",
    "reproduce fig1 --seeds x": "--seeds: must be a whole number of at least 1, not x",
    "--verison": "did you mean '--version'?",
    # commands of other programs
    "version": "there is no command 'version'; did you mean '--version'?",
    "simulate tiny": "did you mean 'run'?",
    "resume run": "did you mean 'run'?",
    "sweep tiny": "as in feelstream compare tiny --vary V=0.01,0.1",
    "data fetch mnist": "there is no command 'data fetch'; did you mean 'get'? see feelstream data --help",
    "data ls": "there is no command 'data ls'; did you mean 'list'?",
    "flower ru": "there is no command 'flower ru'; did you mean 'run'?",
    "run tiny --policy randm": "did you mean 'random'?",
    "tune tiny --policy random": "has no weight to tune",
    "plot run": "did you mean 'report'?",
    "frobnicate": "there is no command 'frobnicate'; allowed: run, compare, tune",
    # scenarios, policies, fields
    "run Tiny": "'Tiny' is neither a preset nor a file; did you mean 'tiny'?",
    "run xyz": "'xyz' is neither a preset nor a file; allowed: cifar10, ",
    "run run": "run is a directory; a scenario is a preset (feelstream presets) or a TOML file",
    "run tiny.toml": "cannot read the scenario tiny.toml: No such file or directory; did you mean the preset 'tiny'?",
    "presets tny": "there is no preset 'tny'; did you mean 'tiny'?",
    "policies lyapunow": "'lyapunow' is not known; did you mean 'lyapunov'?",
    "compare tiny --policy lyapunov,randm": "policy.name: 'randm' is not known; did you mean 'random'?",
    "compare tiny --policy xyz": "'xyz' is not known; allowed: lyapunov, lyapunov_joint",
    "compare tiny --policy ''": "policies: name at least one, as in lyapunov, random",
    "compare tiny --policy mine.py": "'mine.py' names a file alone; name the class in it too, as in mine.py:Name",
    "compare tiny --policy mine.py:Mine": "'mine.py:Mine': there is no file mine.py",
    "compare tiny --policy file.py:Mine": "file.py has no Mine",
    "compare tiny --policy 'lyapunov(V=abc)'": "policy.V: must be a number or 'auto', not 'abc'",
    "compare tiny --policy 'lyapunov(W=3)'": "policy.W: there is no such field in lyapunov; allowed: name, size, V",
    "compare tiny --policy 'lyapunov(V=1'": "must read name or name(field=value,…), as in lyapunov(V=0.1)",
    "compare tiny --policy random --set V=1": "policy.V: there is no such field in random",
    "compare tiny --policy random --vary V=1,2": "policy.V: there is no such field in random",
    "compare tiny --vary V=1,-1": "policy.V: must be greater than 0, not -1",
    "compare tiny --vary policy=random,age": "--vary policy.name: give each policy as --policy instead",
    "compare tiny --vary =1": "--vary '=1' must read section.field=value,value,…",
    "compare tiny --vary V": "--vary 'V' must read section.field=value,value,…",
    "compare tiny --vary V=": "--vary 'V=' must read section.field=value,value,…",
    "compare tiny --dask nonsense://": "there is no Dask scheduler at nonsense://",
    "compare tiny --vary roundz=1,2": "there is no field 'roundz'; did you mean 'rounds'?",
    "check file.py": "'file.py' is not known; give the name of a plug-in, or your own as file.py:Name",
    "study xyz": "'xyz' is not known; allowed: hu2023",
    "reproduce fig9": "there is no figure 'fig9'; did you mean",
    # tune
    "tune tiny --weights 1:2": "--weights '1:2' must read lowest:highest:count, above 0, as in 1e-6:1:13",
    "tune tiny --weights a:b:c": "--weights 'a:b:c' must read",  # :b: is no emoji
    "tune tiny --weights 0:1:5": "--weights '0:1:5' must read lowest:highest:count, above 0",
    "tune tiny --budget abc": "--budget: must be a number of at least 0, not abc",
    "tune tiny --budget -1": "--budget: must be a number of at least 0, not -1",
    "tune tiny --budget 0": "budget_j must be a number of joules above 0, not 0",
    "tune tiny --budget inf": "--budget: must be a number of at least 0, not inf",
    "tune tiny --set policy=random": "'random' has no weight to tune; policies with one have a field V or price",
    # files
    "report absent": "absent is not there; give a directory of results or of a run",
    "report file.py": "file.py is a file, not a directory of results or of a run",
    "report .": "holds neither results (plan.json) nor a run (run.json); in it are run",
    "verify run/run.json": "run/run.json is a file; give the directory that it is in: run",
    "verify file.py": "file.py is a file; give the directory",
    "explain . --bound": "is not a run directory: it has no run.json",
    "run tiny --out run --seed 4": "run holds a run with another seed (0 there, 4 here); choose another directory",
    # scenarios, plug-ins and data sets
    "run": "Missing argument 'SCENARIO'",
    "run tiny --seed": "'--seed'",
    "run tiny --threads 0": "--threads: must be a whole number",
    "run tiny --set": "'--set'",
    "run tiny --out file": "cannot use the directory file: it is a file",
    "run tiny --out file/a": "cannot use the directory file/a",
    "studio run --export .": ". is a directory; name the file too, as in race.html",
    "run tiny --out .": "is not empty and not a run directory",
    "verify absent": "absent is not a run directory",
    "verify empty": "neither it nor a directory in it has a run.json",
    "data get cifar": "'cifar' cannot be fetched; allowed are mnist, fashion-mnist",
    "run tiny --set learning.model=sofmax": "learning.model: 'sofmax' is not known; did",
    "run tiny --set learning.model=no.such:Net": "learning.model: 'no.such:Net' cannot",
    "run tiny --set learning.model=file.py:number": "must be an nn.Module class, a Model",
    "run tiny --set arrivals=trace(path=absent.csv)": "data.arrivals.path: absent.csv is not a file",
    "run tiny --set arrivals=trace(path=bad.csv)": "bad.csv has no column",
    "run tiny --set data.dataset=half.npz": "half.npz has no array y_train",
    "run tiny --set data.dataset=text.npz": "text.npz: the file cannot be read",
    "run tiny --set policy.name=slip.py:Mine": "SyntaxError",
    "run tiny --set policy.name=fails.py:Mine": "ZeroDivisionError",
    "run tiny --set policy.metric=file.py:number": "does not fulfil",
    # explain
    "explain quue_j": "no field, column or policy is called 'quue_j'; did you mean 'queue_j'?",
    "explain run": "give a run directory, a round and a device, as in feelstream explain run --round 1 --device 0",
    "explain run --round 3": "as in feelstream explain run --round 3 --device 0",
    "explain run --round 100 --device 1": "the round must be from 1 to 2, not 100",
    "explain run --round 1 --device 99": "the device must be from 0 to 9, not 99",
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a run in it."""
    place = tmp_path_factory.mktemp("stored")
    fs.simulate("tiny", rounds=2, engine="none", out=place / "run")
    (place / "file.py").write_text("number = 3\n")
    (place / "file").write_text("")
    (place / "empty").mkdir()
    (place / "bad.csv").write_text("a,b\n1,2\n")
    (place / "text.npz").write_text("text")
    np.savez(place / "half.npz", x_train=np.zeros((2, 3, 3), np.uint8))
    (place / "slip.py").write_text("class Mine(:\n")
    (place / "fails.py").write_text("1 / 0\n")
    return place


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake(line: str, stored: Path, feelstream: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stored)
    words = shlex.split(line)
    quick = QUICK if words[:2] == ["run", "tiny"] and "learning.model" not in line else []
    check_one_sentence(feelstream(*words[:2], *quick, *words[2:]), MISTAKES[line])


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
    "doppler_hz=5": "world.channel.doppler_hz: there is no such field in independent, which has none; it is one of ar1",
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


def test_too_little_memory_for_a_scenario(feelstream: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Really asking for it might succeed on a large machine."""

    def out_of_memory(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("feelstream.run.preparing.Simulation", out_of_memory)
    check_one_sentence(feelstream("run", "tiny", *QUICK), "not enough memory")


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "run.json is cut": ("run.json", lambda whole: whole[:300]),
    "run.json is empty": ("run.json", lambda whole: b""),
    "run.json is text": ("run.json", lambda whole: b"hello"),
    "run.json is a list": ("run.json", lambda whole: b"[]"),
    "run.json was edited": ("run.json", lambda whole: whole.replace(b'"seed": 0', b'"seed": 1')),
    "rounds.parquet is cut": ("rounds.parquet", lambda whole: whole[:300]),
    "devices.parquet is cut": ("devices.parquet", lambda whole: whole[:-1]),
}
READERS = [
    "report {}",
    "verify {}",
    "explain {} --round 1 --device 0",
    "explain {} --bound",
    "studio {} --export race.html",
]


@pytest.mark.parametrize("line", READERS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run(damage: str, line: str, stored: Path, feelstream: Command, tmp_path: Path) -> None:
    shutil.copytree(stored / "run", "run")
    name, damaged = DAMAGES[damage]
    whole = Path("run", name).read_bytes()
    Path("run", name).write_bytes(damaged(whole))
    assert Path("run", name).read_bytes() != whole
    check_one_sentence(feelstream(*line.format("run").split()), "feelstream: run", name)
    assert not list(Path().glob("**/*.html"))


def test_help_is_also_a_word(feelstream: Command) -> None:
    assert "Run one scenario" in feelstream("help", "run")[1]
    code, out, _ = feelstream("help")
    assert code == 0
    assert "Commands" in out
