"""CONTRIBUTING.md is true: the files that it names are there, and what it says to touch is all that must be touched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from feelstream import _native
from feelstream.columns import FORMAT
from feelstream.data.datasets import NAMES

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| ([^|]+) \| (.+) \|$", TEXT, re.MULTILINE))
COPIED = (
    "src", "studies", "docs", "tests", "soak", "examples", "pyproject.toml", "CHANGELOG.md", "CONTRIBUTING.md",
    "mkdocs.yml",
)  # fmt: skip


def named(row: str) -> set[str]:
    """The files and folders that a row names, NAME for one that is new."""
    return {path for path in re.findall(r"`([\w./-]+)`", ROWS[row]) if "/" in path or path.endswith((".md", ".toml"))}


@pytest.mark.parametrize("row", [row for row in ROWS if row.startswith(("add", "change"))])
def test_the_files_that_are_named_exist(row: str) -> None:
    missing = [p for p in named(row) if not (ROOT / (p if "NAME" not in p else Path(p).parent)).exists()]
    assert missing == []
    words = [word for word in re.findall(r"`([A-Z]\w+)`", ROWS[row]) if word != "NAME"]
    sources = "".join(
        (ROOT / p).read_text(encoding="utf-8") for p in named(row) if p.endswith(".py") and "NAME" not in p
    )
    folders = [ROOT / p for p in named(row) if p.endswith("/")]
    sources += "".join(f.read_text(encoding="utf-8") for folder in folders for f in folder.rglob("*.py"))
    assert [word for word in words if not re.search(rf"\b{word}\b", sources)] == []


@dataclass
class Copy:
    """A copy of the tree, in which a change is tried."""

    root: Path
    before: dict[str, bytes]

    def change(self, path: str, *pairs: tuple[str, str]) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        for old, new in pairs:
            assert text.count(old) == 1, f"{path} no longer has one {old!r}: this test must follow it"
            text = text.replace(old, new)
        (self.root / path).write_text(text, encoding="utf-8")

    def append(self, path: str, text: str) -> None:
        with (self.root / path).open("a", encoding="utf-8") as file:
            file.write(text)

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        own = [str(self.root / "src"), str(self.root / "studies/src")]
        path = [*own, *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.run(
            [sys.executable, *words], cwd=self.root, capture_output=True, text=True, check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": ""},
        )  # fmt: skip

    def touched_only(self, row: str) -> None:
        """Nothing was touched but what the row names, since this was last asked."""
        after = _contents(self.root)
        touched = {name for name in after.keys() | self.before.keys() if after.get(name) != self.before.get(name)}
        allowed = [
            re.escape(path).replace("NAME", r"\w+") + (".*" if path.endswith("/") else "") for path in named(row)
        ]
        assert touched, row
        assert [name for name in touched if not any(re.fullmatch(path, name) for path in allowed)] == []
        self.before = after

    def test(self, tests: set[str], chosen: str) -> None:
        """These tests pass, those that are chosen by `-k`."""
        words = ["-q", "-x", "-p", "no:cacheprovider", *(f"tests/{test}" for test in sorted(tests)), "-k", chosen]
        done = self.python("-m", "pytest", *words)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr


def _contents(root: Path) -> dict[str, bytes]:
    files = (file for file in root.rglob("*") if file.suffix in (".py", ".md", ".toml", ".json", ".html"))
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in files}


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    root = tmp_path / "copy"
    unwanted = shutil.ignore_patterns("__pycache__", "figures", "assets", "*.ipynb", "replay_results")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=unwanted)
        else:
            shutil.copy2(ROOT / name, root / name)
    kernel = Path(_native.__file__)  # compiled, so in no list of files to touch
    shutil.copy(kernel, root / "src/feelstream" / kernel.name)
    return Copy(root, _contents(root))


Tried = tuple[str, set[str], str]  # the row that was followed, files of tests that must pass, and which tests of them

FIELDS_PAGE = "page_of_fields or a_catalogue_names"  # tests of the pages that are made from the program

FULLEST = '''"""The n feasible devices that hold most: largest |S_k|."""

from __future__ import annotations

import numpy as np

from feelstream.policies.base import Decision, Observation, Policy, State
from feelstream.policies.ranking import lowest


class Fullest(Policy):
    """The devices that hold most samples."""

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan, score = observation.plan(self.size), -observation.stored.astype(float)
        return Decision(lowest(score, plan.feasible, plan.n, rng), plan, score=score)
'''


def a_policy(copy: Copy) -> Tried:
    copy.append("src/feelstream/policies/fullest.py", FULLEST)
    following = "from feelstream.policies.gradient_norm"
    copy.change(
        "src/feelstream/policies/__init__.py",
        (following, f"from feelstream.policies.fullest import Fullest\n{following}"),
        ('        "select_all": SelectAll,\n', '        "select_all": SelectAll,\n        "fullest": Fullest,\n'),
    )
    row = "| `fullest` | largest |S_k| | – | an example |\n"
    copy.change("docs/policies.md", ("| `select_all` |", f"{row}| `select_all` |"))
    copy.python("docs/make_scenario.py")
    copy.append(
        "tests/policies/test_rules.py",
        """
def test_fullest_takes_who_holds_most() -> None:
    assert choose(policy("fullest"), {}, see(stored=np.array([5, 1, 9, 2]))) == [0, 2]
""",
    )
    tests = {"docs/test_pages.py", "policies/test_rules.py", "testing/test_kinds.py", "test_plugins.py"}
    return "add a policy", tests | {"test_promises.py", "environment/test_batteries.py"}, f"fullest or {FIELDS_PAGE}"


def a_column(copy: Copy) -> Tried:
    column = '    "idle": Column(TRUTH, "", "neither trained nor sent"),\n'
    values = '        "idle": np.isin(np.arange(K), schedule, invert=True),\n'
    for path, place, line in (
        ("src/feelstream/columns.py", '    "lost": Column', column),
        ("src/feelstream/run/trace.py", '        "queue_next_j": record', values),
    ):
        copy.change(path, (place, line + place))
    forgotten = copy.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/run/test_schema.py").stdout
    for told in ("raise FORMAT in", "python docs/make_trace.py"):
        assert told in forgotten
    assert "raise FORMAT" in copy.python("tests/run/test_schema.py").stderr  # and the list is not renewed

    copy.change("src/feelstream/columns.py", (f"FORMAT = {FORMAT}", f"FORMAT = {FORMAT + 1}"))
    copy.python("docs/make_trace.py")
    copy.python("tests/run/test_schema.py")
    queue = 'row |= {"queue_j": queue[k], '
    copy.change(
        "tests/support/slow_simulator.py",
        ('"transmitted"), pl.Boolean)', '"transmitted", "idle"), pl.Boolean)'),
        (queue, f'{queue}"idle": k not in chosen, '),
        (f'"format": {FORMAT}', f'"format": {FORMAT + 1}'),
    )
    copy.change(
        "CHANGELOG.md", (f"Format {FORMAT}:", f"Format {FORMAT + 1}: `idle` in devices.parquet.\nFormat {FORMAT}:")
    )
    tests = {"run/test_schema.py", "run/test_trace.py", "run/test_run.py"}
    tests |= {"verification/test_damaged_files.py", "verification/test_agreement.py"}
    return "add a column", tests, "test_schema or test_trace or damaged or blocks or describe or reads_well"


def an_evaluator(copy: Copy) -> Tried:
    copy.change(
        "src/feelstream/evaluation/evaluators.py",
        (
            "EVALUATORS: Kind",
            '''class Best(Evaluator):
    """Accuracy on what the device holds on which the model is best."""

    def evaluate(self, context: EvaluationContext, state: State) -> tuple[Values, State]:
        accuracy = context.held.mean(context.predict("train", context.held.samples).correct)
        return {"best_device": float(np.nanmax(accuracy)) if context.held.counts.any() else np.nan}, state


EVALUATORS: Kind''',
        ),
        ('"classes": Classes}', '"classes": Classes, "best": Best}'),
    )
    column = """    "best_device": Column(
        REAL, "", "accuracy of the best device", NOBODY_HOLDS, "evaluates_best", shown=shown("best device", **SHARE)
    ),
"""
    copy.change(
        "src/feelstream/columns.py",
        ('"devices", "classes")', '"devices", "classes", "best")'),
        ('    "forgetting": Column', f'{column}    "forgetting": Column'),
    )
    copy.change("docs/evaluators.md", ("| `classes` | `forg", "| `best` | `best_device` | |\n| `classes` | `forg"))
    for page in ("docs/make_trace.py", "docs/make_scenario.py", "tests/run/test_schema.py"):
        copy.python(page)
    copy.append(
        "tests/evaluation/test_ours.py",
        """
def test_the_best_device_verifies(tmp_path) -> None:
    import feelstream as fs

    run = fs.simulate(fs.preset("tiny"), evaluators=["best"])
    path = run.save(tmp_path / "run")
    assert fs.verify(path).ok
    run.rounds.with_columns(best_device=1.5).write_parquet(path / "rounds.parquet")
    found = fs.verify(seal(path)).disagreement
    assert found is not None and found.rule == "best_device is within its range, and finite"
""",
    )
    copy.change("tests/evaluation/test_ours.py", (", small\n", ", small\nfrom sealing import seal\n"))
    tests = {"docs/test_pages.py", "evaluation/test_ours.py", "run/test_schema.py"}
    return "add an evaluator", tests, f"best_device or test_schema or {FIELDS_PAGE}"


@pytest.mark.nightly
def test_what_a_row_names_is_all_that_must_be_touched(copy: Copy) -> None:
    """Every change is made in the same copy, one after the other, so that it is compiled and tested once."""
    everything, words = set[str](), list[str]()
    for adding in (a_column, a_policy, an_evaluator):
        row, tests, chosen = adding(copy)
        copy.touched_only(row)
        everything |= tests
        words.append(chosen)
    copy.test(everything, " or ".join(words))


@pytest.mark.parametrize("page", ["docs/data.md", "docs/reference/scenario.md"])
def test_every_data_set_is_named_where_one_is_added(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [name for name in NAMES if name not in text] == []
