"""Code of a script or notebook is known by what it does: any change of what it uses is another run's code."""

from __future__ import annotations

import builtins
import importlib
import math
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import small

import feelstream as fs
from feelstream.errors import ScenarioError
from feelstream.experiment.identity import same_identity
from feelstream.run.live_code import _is_installed
from feelstream.run.named_files import named_files
from feelstream.scenario import Scenario

HEAD = """
import functools
from dataclasses import dataclass
from typing import ClassVar
from pydantic import Field
import feelstream as fs
"""
CLASS = """
class Mine(fs.Policy):
    {more}
    def select(self, state, observation, rng):
        return {uses}
made = Mine()
"""


def script(uses: str, before: str = "", more: str = "pass") -> str:
    return HEAD + before + CLASS.format(uses=uses, more=more)


DECORATED = script("1.0").replace("    def select", "    @decorate\n    def select")
LOCAL = HEAD + "def make(w):" + CLASS.format(uses="w", more="pass").replace("\n", "\n    ") + "\n    return made\n"
BESIDE = {"helper_of_live_code.py": "from deeper_of_live_code import W\n", "deeper_of_live_code.py": "W = 1.0\n"}
DECORATOR = "def decorate(f):\n    def inner(*a):\n        return f(*a)\n    return inner\n"
DECORATES = {"helper_of_live_code.py": DECORATOR}
HELPER = "import helper_of_live_code as helper\n"
FROM_HELPER = "from helper_of_live_code import "
DATACLASS = "@dataclass\nclass C:\n    w: float\nc = C(1.0)\n"
NUMBER = "class F(float):\n    def twice(self): return 1.0\nw = F(3)\n"
BASE = "class Base(fs.Policy):\n    x: ClassVar = 3\n"
META = "class Meta(type):\n    w = property(lambda cls: 1.0)\nclass C(metaclass=Meta): pass\n"
GETS = "class Meta(type):\n    def __getattr__(cls, name): return 1.0\nclass C(metaclass=Meta): pass\n"
TWO = "def a(): return 1.0\ndef b(): return 2.0\n"
# What is different in the text: the script, the files beside it, the old text and the new one.
CASES: dict[str, tuple[str, dict[str, str], str, str]] = {
    "method": (script("1.0"), {}, "1.0", "2.0"),
    "global": (script("W", "W = 1.0\n"), {}, "1.0", "2.0"),
    "default": (script("w()", "def w(*, s=1.0): return s\n"), {}, "1.0", "2.0"),
    "private attribute": (script("self._w", more="_w: float = 1.0"), {}, "1.0", "2.0"),
    "private class variable": (script("self._w", more="_w: ClassVar[float] = 1.0"), {}, "1.0", "2.0"),
    "class variable like pydantic's": (script("self.model_w", more="model_w: ClassVar[float] = 1.0"), {}, "1.0", "2.0"),
    "private class": (script("self._In.w", more="class _In: w = 1.0\n"), {}, "1.0", "2.0"),
    "field that is not stored": (script("self.w", more="w: float = Field(1.0, exclude=True)"), {}, "1.0", "2.0"),
    "attribute set later": (script("Mine.w") + "Mine.w = 1.0\n", {}, "1.0", "2.0"),
    "attribute of a function": (script("f()", "def f(): return f.w\nf.w = 1.0\n"), {}, "1.0", "2.0"),
    "closure": (LOCAL + "made = make(1.0)\n", {}, "1.0", "2.0"),
    "own decorator": (DECORATED.replace("\nclass", DECORATOR + "\nclass", 1), {}, "1.0", "2.0"),
    "decorated": (DECORATED.replace(HEAD, HEAD + FROM_HELPER + "decorate\n"), DECORATES, "1.0", "2.0"),
    "cached": (script("w()", "@functools.lru_cache\ndef w(): return 1.0\n"), {}, "1.0", "2.0"),
    "partial": (script("w()", "w = functools.partial(float, 1.0)\n"), {}, "1.0", "2.0"),
    "object": (script("c.w", DATACLASS), {}, "C(1.0)", "C(2.0)"),
    "number of its own": (script("w.twice()", NUMBER), {}, "1.0", "2.0"),
    "shape of a list": (script("t", "t = [[1.0], [2.0]]\n"), {}, "[[1.0], [2.0]]", "[[1.0, [2.0]]]"),
    "one function for another": (script("(a(), b(), z())", TWO + "z = a\n"), {}, "z = a", "z = b"),
    "one of several functions": (script("z[2]()", TWO + "z = [a, b, a]\n"), {}, "b, a]", "b, b]"),
    "base class": (script("1.0", BASE).replace("Mine(fs.Policy", "Mine(Base"), {}, "= 3", "= 4"),
    "property of a metaclass": (script("C.w", META), {}, "1.0", "2.0"),
    "any attribute of a class": (script("C.w", GETS), {}, "1.0", "2.0"),
    "number set on a library": (
        script("math.of_live_code", "import math\nmath.of_live_code = 1.0\n"),
        {},
        "1.0",
        "2.0",
    ),
    "function set on a library": (
        script("fs.of_live_code()", "fs.of_live_code = functools.partial(lambda: 1.0)\n"),
        {},
        "1.0",
        "2.0",
    ),
    "set on a part of a library": (
        script(
            "math.of_live_code.of_live_code",
            "import math, types\nmath.of_live_code = types\ntypes.of_live_code = [1.0]\n",
        ),
        {},
        "1.0",
        "2.0",
    ),
    "name set for all modules": (
        script("of_live_code", "import builtins\nbuiltins.of_live_code = 1.0\n"),
        {},
        "1.0",
        "2.0",
    ),
    "module beside": (script("helper.W", HELPER), BESIDE, "1.0", "2.0"),
    "name from beside": (script("W", FROM_HELPER + "W\n"), BESIDE, "1.0", "2.0"),
    "module set from the script": (script("helper.V", HELPER + "helper.V = 3.0\n"), BESIDE, "3.0", "4.0"),
    "imported when called": (
        script("w()", f"def w():\n    {FROM_HELPER}W\n    return W\n"),
        BESIDE,
        "1.0",
        "2.0",
    ),
}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, dict[str, str]], Scenario]]:
    """Runs a script as `__main__`, each time as if Python were started anew; the scenario with the policy it made."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget() -> None:
        for name in [name for name in sys.modules if name.endswith("_of_live_code")]:
            del sys.modules[name]
        for library in (builtins, fs, math, types):
            library.__dict__.pop("of_live_code", None)

    def run(text: str, files: dict[str, str]) -> Scenario:
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        forget()
        importlib.invalidate_caches()
        main: Any = types.ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", main)
        exec(compile(text, "script", "exec"), vars(main))
        return small().with_(policy=main.made)

    yield run
    forget()


@pytest.mark.parametrize("case", CASES)
def test_another_number_is_other_code(ran: Any, case: str) -> None:
    text, files, old, new = CASES[case]
    before = named_files(ran(text, files))
    assert list(before)
    assert named_files(ran("# a comment\nOTHER = 3\n" + text, files)) == before, "the same code"
    changed = {name: content.replace(old, new) for name, content in files.items()}
    assert (text.replace(old, new), changed) != (text, files)
    assert named_files(ran(text.replace(old, new), changed)) != before


@pytest.mark.parametrize(
    "text",
    [
        script("next(w)", "w = (x for x in [1.0])\n"),
        script("eval('W')", "W = 1.0\n"),
        script("globals()['W']", "W = 1.0\n"),
    ],
    ids=["generator", "eval", "globals"],
)
def test_code_that_cannot_be_told_is_never_taken_for_another(ran: Any, text: str) -> None:
    assert named_files(ran(text, {})) != named_files(ran(text, {}))


def test_what_a_module_beside_holds_need_not_be_told_where_its_file_is(ran: Any) -> None:
    files = {"helper_of_live_code.py": "import threading\nlock = threading.Lock()\ndef w():\n    return lock and 1.0\n"}
    text = script("helper.w()", HELPER)
    assert named_files(ran(text, files)) == named_files(ran(text, files))


def test_a_module_that_was_edited_and_not_imported_again_is_not_taken_for_the_new_one(ran: Any, tmp_path: Path) -> None:
    text, file = script("helper.W", HELPER), tmp_path / "helper_of_live_code.py"
    scenario = ran(text, {file.name: "W = 1.0\n"})
    file.write_text("W = 2.0\n")
    stale = named_files(scenario)
    assert stale != named_files(ran(text, {file.name: "W = 2.0\n"}))
    assert stale != named_files(ran(text, {file.name: "W = 1.0\n"}))


def test_a_policy_of_an_imported_module_that_was_edited_is_refused(ran: Any, tmp_path: Path) -> None:
    """In a notebook that goes on: the class is the old one, and its file is not."""
    file, text = tmp_path / "helper_of_live_code.py", FROM_HELPER + "made\n"
    scenario = ran(text, {file.name: script("None")})
    before = named_files(scenario)
    file.write_text(script("1.0"))
    assert named_files(scenario) == before, "what was imported"
    with pytest.raises(ScenarioError, match="helper_of_live_code:Mine' changed after it was imported; start Python"):
        fs.simulate(scenario)
    assert named_files(ran(text, {})) != before


def test_classes_of_one_name_in_one_script_are_told_apart(ran: Any) -> None:
    one, other = ran(LOCAL + "made = make(1.0)\n", {}), ran(LOCAL + "made = make(2.0)\n", {})
    assert one.as_dict() == other.as_dict()
    assert same_identity(one) != same_identity(other)


def test_a_project_below_the_prefix_of_python_is_not_installed() -> None:
    assert not _is_installed(Path(sys.base_prefix) / "src" / "app" / "helper.py")
    assert _is_installed(Path(sysconfig.get_paths()["purelib"]) / "some" / "helper.py")
