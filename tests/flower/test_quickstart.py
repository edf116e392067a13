"""The diff of docs/deployment.md, applied to an app as Flower's quickstarts have it."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from deployed_clients import LoopGrid
from flwr.app import Context, Message, RecordDict

ROOT = Path(__file__).parents[2]
STOCK = ROOT / "tests" / "support" / "stock_app"
DEVICES = 10


def shown_diff() -> str:
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```diff\n(.*?)```", page, re.S)
    (scenario,) = re.findall(r"or a table such as\s`({.*?})`:", page)
    return found.replace("SCENARIO", scenario)


def apply(diff: str, directory: Path) -> None:
    """Each hunk's old lines must be in its file, once; the new ones take their place."""
    for name, hunks in re.findall(r"--- a/(\S+)\n\+\+\+ b/\S+\n@@\n(.*?)(?=--- a/|\Z)", diff, re.S):
        text = (directory / name).read_text()
        for hunk in hunks.split("@@\n"):
            lines = hunk.splitlines()
            old = "".join(line[1:] + "\n" for line in lines if not line.startswith("+"))
            new = "".join(line[1:] + "\n" for line in lines if not line.startswith("-"))
            assert text.count(old) >= 1, old
            text = text.replace(old, new, 1)
        (directory / name).write_text(text)


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copytree(STOCK, tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.syspath_prepend(str(tmp_path / "app"))
    yield tmp_path / "app"
    sys.modules.pop("task", None)


def load(app: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"stock_{name}", app / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(app: Path) -> Any:
    server, client, grid = load(app, "server_app"), load(app, "client_app"), LoopGrid()
    config: dict[str, Any] = {"num-server-rounds": 3, "fraction-evaluate": 1.0, "local-epochs": 2, "result": []}

    def answer(context: Context, message: Message) -> Message:
        context.run_config = config
        return client.app(message, context)

    for device in range(DEVICES):
        grid.add(device + 1, {"partition-id": device}, answer)
    server.main(grid, Context(1, 1, {}, RecordDict(), config))
    return config["result"][0], grid


def test_the_diff_is_short() -> None:
    changed = [line for line in shown_diff().splitlines() if re.match(r"[+-](?![+-]{2} )", line)]
    assert len(changed) <= 10


def test_the_clients_half_alone_changes_nothing_under_flowers_own_strategy(app: Path) -> None:
    before, _ = run(app)
    apply(shown_diff().split("--- a/server_app.py")[0], app)
    after, _ = run(app)
    for t, metrics in before.train_metrics_clientapp.items():  # Flower averages in a random order, so to a rounding
        assert after.train_metrics_clientapp[t]["train_loss"] == pytest.approx(metrics["train_loss"], rel=1e-5)


def test_it_runs_before_and_after(app: Path) -> None:
    before, _ = run(app)
    apply(shown_diff(), app)
    after, grid = run(app)
    assert list(after.train_metrics_clientapp) == list(before.train_metrics_clientapp) == [1, 2, 3]
    assert set(after.train_metrics_clientapp[3]) == set(before.train_metrics_clientapp[3]) == {"train_loss"}
    assert set(after.evaluate_metrics_clientapp[3]) == {"eval_loss", "eval_acc"}
    trained = [message for message in grid.sent if message.metadata.message_type == "train"]
    assert len(trained) == 3 * 4  # the policy's size
    assert after.evaluate_metrics_clientapp[3]["eval_loss"] < after.evaluate_metrics_clientapp[1]["eval_loss"]
