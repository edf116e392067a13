"""`fs.compare` and `fs.simulate` from scripts as people write them: no guard, a policy in the script itself."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

pytestmark = pytest.mark.slow  # each starts processes
PLAIN = """
import feelstream as fs
print("body")
found = fs.compare(["lyapunov", "random"], "tiny", seeds=3, rounds=3, engine="none", workers=2)
print(found.failures, found.table(["energy_j"]).height)
"""

OWN = """
import numpy as np
import feelstream as fs

SIGN = -1.0

def wanted(observation):
    return SIGN * observation.stored

class MostData(fs.Policy):
    def select(self, state, observation, rng):
        plan = observation.plan(self.size)
        ids = rng.permutation(np.flatnonzero(plan.feasible))
        most = np.argsort(wanted(observation)[ids], kind="stable")
        return fs.Decision(ids[most][: self.size], plan)

"""
COMPARE = 'print(fs.compare([MostData(), "random"], "tiny", seeds=2, rounds=3, engine="none", out="out").failures)\n'
SIMULATE = 'fs.simulate("tiny", policy=MostData(), rounds=3, engine="none", out="run")\n'


def run(directory: Path, text: str) -> subprocess.CompletedProcess[str]:
    (directory / "script.py").write_text(text)
    command = [sys.executable, "script.py"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=PATIENCE_S)


def digests(directory: Path) -> set[str]:
    """The code that stored runs say they ran."""
    found = [json.loads(path.read_text())["files"] for path in directory.rglob("run.json")]
    return {digest for files in found for digest in files.values()}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """What became of the script that compares, and where it left its runs."""
    directory = tmp_path_factory.mktemp("compared")
    return run(directory, OWN + COMPARE), directory


@pytest.fixture
def played(compared, tmp_path):
    """Those runs, in a directory of this test's own."""
    return Path(shutil.copytree(compared[1], tmp_path, dirs_exist_ok=True))


def test_a_script_without_a_guard_runs_once(tmp_path):
    ended = run(tmp_path, PLAIN)
    assert ended.stdout == "body\n[] 2\n"
    assert ended.stderr == ""
    assert ended.returncode == 0


def test_a_policy_of_the_script_runs_in_one_process_which_is_said(compared):
    ended, _ = compared
    assert ended.stdout == "[]\n"
    assert "MostData is defined in this script" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_runs_of_a_changed_script_are_repeated_which_is_said(played):
    first = digests(played)
    assert len(first) == 1
    assert "played again" not in run(played, OWN + COMPARE).stderr
    assert digests(played) == first
    ended = run(played, "# another comment\n" + OWN + COMPARE)
    assert "2 stored runs are played again, since the script has changed; in a file of its own" in ended.stderr
    assert len(digests(played)) == 2
    assert ended.stdout == "[]\n"


EDIT = 'open(__file__, "a").write("# edited\\n")\n'


def test_a_script_that_is_edited_while_it_runs_finishes_its_plan_and_begins_no_run(tmp_path):
    during = OWN.replace("    return SIGN", f"    {EDIT}    return SIGN")
    assert run(tmp_path, during + COMPARE).stdout == "[]\n"
    ended = run(tmp_path, OWN + EDIT + SIMULATE)
    assert ended.returncode == 1
    assert "script.py changed after it was loaded; start Python" in ended.stderr


def test_a_stored_run_is_refused_to_changed_code(tmp_path):
    assert run(tmp_path, OWN + SIMULATE).returncode == 0
    assert run(tmp_path, OWN + SIMULATE).returncode == 0
    ended = run(tmp_path, (OWN + SIMULATE).replace("SIGN = -1.0", "SIGN = 1.0"))
    assert ended.returncode == 1
    assert "holds a run with other files (__main__:MostData" in ended.stderr


def test_a_finished_run_of_code_without_a_file_is_never_used_again(tmp_path):
    command = [sys.executable, "-c", OWN + SIMULATE]
    ended = [subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S) for _ in "ab"]
    assert [each.returncode for each in ended] == [0, 1]
    assert "holds a finished run of __main__:MostData, which has no file" in ended[1].stderr
