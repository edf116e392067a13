"""A run that cannot be read is refused in one sentence."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from sealing import seal
from slow_simulator import scenario, simulate

from feelstream.columns import FORMAT
from feelstream.errors import RunError
from feelstream.verification import reading, verify


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return simulate(scenario(system__rounds=4)).save(tmp_path / "run")


def rewrite(directory: Path, file: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    path = directory / f"{file}.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    seal(directory)


def edit(directory: Path, **fields: object) -> None:
    seal(directory, **fields)


def refusal(directory: Path) -> str:
    with pytest.raises(RunError) as caught:
        verify(directory)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_no_directory(tmp_path: Path) -> None:
    assert "no such directory" in refusal(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["run.json", "rounds.parquet", "devices.parquet"])
def test_a_missing_file_is_named(run: Path, name: str) -> None:
    (run / name).unlink()
    assert name in refusal(run)


@pytest.mark.parametrize("name", ["run.json", "rounds.parquet", "devices.parquet"])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_named(run: Path, name: str, part: float) -> None:
    whole = (run / name).read_bytes()
    (run / name).write_bytes(whole[: int(len(whole) * part)])
    assert name in refusal(run)


@pytest.mark.parametrize("name", ["rounds.parquet", "devices.parquet"])
def test_other_content_is_refused(run: Path, name: str) -> None:
    (run / name).write_bytes(b"PAR1" + b"\x00" * 500 + b"PAR1")
    assert name in refusal(run)
    (run / name).write_text("round,device\n1,0\n")
    assert name in refusal(run)


def test_a_run_that_is_not_complete(run: Path) -> None:
    edit(run, status="running")
    assert "not complete" in refusal(run)


@pytest.mark.parametrize("number", [0, 1, "2", None])
def test_another_format(run: Path, number: object) -> None:
    edit(run, format=number)
    assert "format" in refusal(run)


@pytest.mark.parametrize(
    "text", ["[]", "3", "null", "{}", f'{{"format": {FORMAT}}}', f'{{"format": {FORMAT}, "status": "complete"}}']
)
def test_run_json_without_its_fields(run: Path, text: str) -> None:
    (run / "run.json").write_text(text)
    assert "run.json lacks" in refusal(run)


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("system", "devices", 0),
        ("system", "devices", "five"),
        ("system", "rounds", 2.5),
        ("system", "round_s", 0),
        ("system", "energy_budget_j", [0.1]),
        ("cpu", "frequency_hz", [1e9]),
        ("cpu", "cycles", None),
        ("radio", "received_power_dbm", 1e6),
        ("radio", "fading", "rician"),
        ("radio", "admission", "none"),
        ("policy", "V", -1),
        ("policy", "V", "much"),
        ("policy", "metric", 7),
        ("policy", "cardinality", ["exact"]),
        ("trace", "level", "half"),
        ("learning", "eval_every", 0),
    ],
)
def test_a_setting_that_cannot_be(run: Path, section: str, name: str, value: object) -> None:
    scenario_tree = json.loads((run / "run.json").read_text())["scenario"]
    scenario_tree[section][name] = value
    edit(run, scenario=scenario_tree)
    assert f"{section}.{name}" in refusal(run)


def test_a_setting_that_is_not_there(run: Path) -> None:
    scenario_tree = json.loads((run / "run.json").read_text())["scenario"]
    del scenario_tree["radio"]["link_margin"]
    edit(run, scenario=scenario_tree)
    assert "run.json lacks scenario.radio.link_margin" in refusal(run)


@pytest.mark.parametrize(("file", "column"), [("rounds", "planned"), ("devices", "used_labels"), ("devices", "gain")])
def test_wrong_columns_are_named(run: Path, file: str, column: str) -> None:
    rewrite(run, file, lambda frame: frame.with_columns(pl.lit("x").alias(column)))
    assert column in refusal(run)
    rewrite(run, file, lambda frame: frame.drop(column))
    assert f"lacks the column {column}" in refusal(run)


@pytest.mark.parametrize("file", ["rounds", "devices"])
def test_a_wrong_number_of_rows(run: Path, file: str) -> None:
    rewrite(run, file, lambda frame: frame.head(-1))
    assert "rows" in refusal(run)


def test_label_lists_of_another_length(run: Path) -> None:
    rewrite(run, "devices", lambda frame: frame.with_columns(pl.col("fresh_labels").list.head(2)))
    assert "fresh_labels" in refusal(run)


@pytest.mark.parametrize("classes", [9, 2**63, 2**70])  # the latter two fit no integer of the tables
def test_another_number_of_classes(run: Path, classes: int) -> None:
    edit(run, data=json.loads((run / "run.json").read_text())["data"] | {"classes": classes})
    assert f"one entry per class ({classes})" in refusal(run)


def test_flipped_bytes_of_run_json_never_crash(run: Path) -> None:
    """Whatever a damaged disk returns: a report or one sentence, never another error."""
    rng = random.Random(1)
    whole = (run / "run.json").read_bytes()
    refused = 0
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 1, 20])):
            damaged[rng.randrange(len(damaged))] = rng.choice(b'0123456789-.e"[]{},: x\xff')
        (run / "run.json").write_bytes(damaged)
        try:
            str(verify(run))
        except RunError:
            refused += 1
    assert refused > 0


def test_the_recheck_shares_no_code_with_the_simulator() -> None:
    """Its modules import nothing of ours but themselves, errors, columns, and what parses files of any origin."""
    allowed = ("feelstream.verification.", "feelstream.errors", "feelstream.tables", "feelstream.columns")
    files = list(Path(reading.__file__).parent.glob("*.py"))
    assert len(files) > 5
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith("feelstream") or name.startswith(allowed), (file.name, name)
            assert not isinstance(node, ast.ImportFrom) or node.level == 0, file.name
