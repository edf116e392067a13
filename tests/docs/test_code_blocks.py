"""Every block of Python, and every command in a block of bash, runs as it stands, from top to bottom of its page."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pages import DOCS, PAGES, ROOT, Block, blocks

import feelstream as fs
from feelstream.cli import main

WITH_CODE = [page for page in PAGES if blocks(page)]
NEEDS = {"docs/within-budget.md": ["nightly"]}  # long; marks by page


def of_deployment(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Half of an app: the rest of it (a grid, a model) is the reader's own."""
    pytest.importorskip("flwr")
    from flwr.clientapp import ClientApp

    from feelstream.flower import Scheduled

    Path("my-devices.toml").write_text(fs.to_toml(fs.preset("tiny")))
    patch.setattr(Scheduled, "start", lambda self, grid, arrays, **options: None)
    return {"app": ClientApp(), "grid": None, "arrays": None, "evaluate": None}


def of_a_client(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a message handler of an app is given, and an instrument of the reader's own."""
    pytest.importorskip("flwr")
    from flwr.app import Context, Message, MetricRecord, RecordDict

    from feelstream.flower import LocalGrid

    LocalGrid()  # fills in who we are
    told = {
        "round": 1,
        "used-round": 0,
        "classes": 3,
        "deletes": 0,
        "frequency-hz": [1e8, 1e9],
        "gain-range": [0.25, 4.0],
    }
    message = Message(RecordDict({"feelstream.server": MetricRecord(told)}), 7, "query.feelstream")
    context = Context(1, 7, {"partition-id": 2}, RecordDict(), {})
    monitor = SimpleNamespace(joules=lambda: 0.0)
    return {"context": context, "message": message, "label_counts": lambda: [1, 2, 3], "my_power_monitor": monitor}


def of_an_app(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An app as Flower's quickstarts have it, with what the page adds to its server."""
    pytest.importorskip("flwr")
    page = (DOCS / "how-to" / "own-flower-app.md").read_text(encoding="utf-8")
    added, *_ = re.findall(r"\n\n((?:    .*\n)+)", page)
    shutil.copytree(ROOT / "tests" / "support" / "stock_app", "my-app")
    server = Path("my-app/server_app.py")
    text = server.read_text().replace("    # Start strategy", f"{added}\n    # Start strategy")
    server.write_text(f"from feelstream.flower import Scheduled\n{text}")
    Path("my-app/pyproject.toml").write_text(
        "project.name = 'mine'\n[tool.flwr.app]\n"
        "components = {serverapp = 'server_app:app', clientapp = 'client_app:app'}\n"
        "config = {policy='', out='', num-server-rounds=3, fraction-evaluate=1.0, local-epochs=1, result=[]}\n"
    )
    patch.syspath_prepend("my-app")
    for name in ("task", "client_app", "server_app"):
        patch.delitem(sys.modules, name, raising=False)
    return {}


BEFORE: dict[str, Callable[[pytest.MonkeyPatch], dict[str, Any]]] = {
    "docs/deployment.md": of_deployment,
    "docs/how-to/own-flower-app.md": of_an_app,
    "docs/semi-synchronous.md": of_deployment,
    "docs/measured-plans.md": of_a_client,
}


MENU = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
HOW_TO = set(re.findall(r"[\w/-]+\.md", MENU.partition("\n  - How-to:\n")[2].partition("\n  - Explanation:\n")[0]))


def named(page: Path) -> Any:
    name = str(page.relative_to(ROOT))
    marks = ["nightly" if name.removeprefix("docs/") in HOW_TO else "slow", *NEEDS.get(name, [])]
    return pytest.param(page, id=name, marks=[getattr(pytest.mark, mark) for mark in marks])


@pytest.mark.parametrize("page", [named(page) for page in WITH_CODE])
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = str(page.relative_to(ROOT))
    for package in ("torch", "optuna", "distributed", "pandas", "flwr"):
        if re.search(rf"^(from|import) {package}\b|to_{package}\(", page.read_text(encoding="utf-8"), re.MULTILINE):
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    script = ModuleType("__main__")  # where classes of a script are looked for
    monkeypatch.setitem(sys.modules, "__main__", script)
    names = vars(script)
    names |= BEFORE.get(name, lambda patch: {})(monkeypatch)
    for block in blocks(page):
        if block.file:
            Path(block.file).write_text(block.text)
        if block.language == "python":
            file = tmp_path / page.name  # a Flower app puts its runs beside the file that its code is in
            file.write_text("\n" * (block.line - 1) + block.text)
            exec(compile(file.read_text(), str(file), "exec"), names)
        else:
            run_commands(block, name, monkeypatch)


def run_commands(block: Block, name: str, patch: pytest.MonkeyPatch) -> None:
    """Lines `feelstream … [> file]`, in this process; a line may go on below a backslash."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "feelstream", f"{name}: blocks of bash hold commands of feelstream, not: {line}"
        command, _, to = " ".join(map(shlex.quote, words)).partition(" '>' ")
        patch.setattr(sys, "argv", shlex.split(command))
        with open(to or os.devnull, "w") as file, redirect_stdout(file), pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code, f"{name}: {line}"


def test_the_stream_on_the_page_of_data_is_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(DOCS / "data.md")[0].text, "data.md", "exec"), {})
    assert float(capsys.readouterr().out) > 0.5  # three classes: chance is 0.33


def test_the_first_run_prints_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    page = (DOCS / "getting-started.md").read_text(encoding="utf-8")
    shown = page.partition("```text\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["feelstream", "run", "tiny", "--out", "runs/first"])
    with pytest.raises(SystemExit):
        main()
    assert re.sub(r"\d+", "0", capsys.readouterr().out).split() == re.sub(r"\d+", "0", shown).split()


def printed(code: str) -> str:
    """By a script without a guard."""
    source = Path(fs.__file__ or "").parents[1]
    with TemporaryDirectory() as directory:
        (Path(directory) / "first.py").write_text(code)
        done = subprocess.run(
            [sys.executable, "first.py"], cwd=directory, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(source)},
        )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_the_output_that_is_shown_has_the_shape_of_what_is_printed() -> None:
    """The first example: the same words in the same places, whatever the digits."""
    shown = (ROOT / "README.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    code = next(block.text for block in blocks(ROOT / "README.md") if block.language == "python")
    assert re.sub(r"\d+", "0", printed(code)).split() == re.sub(r"\d+", "0", shown).split()


def test_the_decision_of_the_first_run_is_explained_as_shown() -> None:
    page = (DOCS / "how-to" / "explain.md").read_text(encoding="utf-8")
    shown = page.partition("```text\n")[2].partition("```")[0]
    assert str(fs.simulate("tiny", seed=0).explain(4, 6)).split() == shown.split()
