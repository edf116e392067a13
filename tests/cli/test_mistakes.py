"""What people type in their first ten minutes and should not have: each gets one sentence that says what to type."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

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
    "run tiny --seed 1.5": "--seed: must be a whole number from 0 to 9223372036854775807, not 1.5",
    "run tiny --rounds 1000000000000": "system.rounds: must be at most 2147483647",
    "run tiny --set learning.momentum=0.5": "there is no such field; did you mean 'learning.local.momentum'?",
    "compare tiny --policy random --vary learning.momentum=0,0.5": "did you mean 'learning.local.momentum'?",
    "run tiny --change 3": "'3' must read round:section.field=value, for instance 12:policy.V=0.2",
    "run tiny --change 30:V=0.1": "policy.V: must change in a round from 1 to 10, not 30",
    "run tiny --change 3:rounds=4": "rounds: cannot change during a run",
    "run tiny --log tensorbord": "--log: there is no 'tensorbord'; did you mean 'tensorboard'?",
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
    "compare tiny --policy mine.py": "'mine.py' names a file alone; name the class in it too, as in mine.py:Name",
    "compare tiny --policy mine.py:Mine": "'mine.py:Mine': there is no file mine.py",
    "compare tiny --policy file.py:Mine": "file.py has no Mine",
    "compare tiny --policy 'lyapunov(V=abc)'": "policy.V: must be a number or 'auto', not 'abc'",
    "compare tiny --policy 'lyapunov(W=3)'": "policy.W: there is no such field in lyapunov; allowed: name, size, V",
    "compare tiny --policy 'lyapunov(V=1'": "must read name or name(field=value,…), as in lyapunov(V=0.1)",
    "compare tiny --vary V": "--vary 'V' must read section.field=value,value,…",
    "compare tiny --vary V=": "--vary 'V=' must read section.field=value,value,…",
    "compare tiny --dask nonsense://": "there is no Dask scheduler at nonsense://",
    "compare tiny --vary roundz=1,2": "there is no field 'roundz'; did you mean 'rounds'?",
    "check file.py": "'file.py' is not known; give the name of a plug-in, or your own as file.py:Name",
    "study xyz": "'xyz' is not known; allowed: hu2023",
    "reproduce fig9": "there is no figure 'fig9'; did you mean",
    # tune
    "tune tiny --weights 1:2": "--weights '1:2' must read lowest:highest:count, above 0, as in 1e-6:1:13",
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
    return place


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake(line: str, stored: Path, feelstream: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stored)
    quick = QUICK if line.startswith("run tiny") and "--set V" not in line else []
    check_one_sentence(feelstream(*shlex.split(line), *quick), MISTAKES[line])


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
