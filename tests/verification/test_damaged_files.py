"""A run that cannot be read is refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from sealing import seal
from slow_simulator import scenario, simulate

from feelstream.columns import FORMAT
from feelstream.errors import RunError
from feelstream.verification import verify


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return simulate(scenario(system__rounds=4)).save(tmp_path / "run")


def rewrite(directory: Path, file: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    path = directory / f"{file}.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    seal(directory)


def refusal(directory: Path) -> str:
    with pytest.raises(RunError) as caught:
        verify(directory)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ["run.json", "rounds.parquet", "devices.parquet"])
def test_a_missing_file_is_named(run: Path, name: str) -> None:
    (run / name).unlink()
    assert name in refusal(run)
    assert "no such directory" in refusal(run / "nowhere")


CONTENT: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "cut early": lambda whole: whole[: len(whole) // 3],
    "cut late": lambda whole: whole[: len(whole) * 9 // 10],
    "zeros": lambda whole: b"PAR1" + b"\x00" * 500 + b"PAR1",
    "text": lambda whole: b"round,device\n1,0\n",
}


@pytest.mark.parametrize("name", ["run.json", "rounds.parquet", "devices.parquet"])
@pytest.mark.parametrize("content", CONTENT)
def test_other_content_is_refused(run: Path, name: str, content: str) -> None:
    (run / name).write_bytes(CONTENT[content]((run / name).read_bytes()))
    assert name in refusal(run)


@pytest.mark.parametrize(("field", "value"), [("status", "running"), *(("format", x) for x in (0, 1, "2", None))])
def test_another_format_and_a_run_that_is_not_complete(run: Path, field: str, value: object) -> None:
    seal(run, **{field: value})
    assert ("not complete" if field == "status" else "format") in refusal(run)


@pytest.mark.parametrize(
    ("text", "lacks"),
    [("[]", "format"), ("3", "format"), ("{}", "format"), (f'{{"format": {FORMAT}}}', "status")],
)
def test_run_json_without_its_fields(run: Path, text: str, lacks: str) -> None:
    (run / "run.json").write_text(text)
    assert f"run.json lacks {lacks}" in refusal(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("devices", 0),
        ("devices", "five"),
        ("rounds", 2.5),
        ("round_s", 0),
        ("phases", []),
        ("phases", [{"first": 2, "V": 0.1, "auto": False, "size": 1, "smallest_plan": 1, "energy_budget_j": 1.0}]),
        ("phases.0.energy_budget_j", [0.1]),
        ("phases.0.V", -1),
        ("phases.0.V", "much"),
        ("alike.frequency_low_hz", [1e9]),
        ("alike.cycles", None),
        ("alike.cycles", -1.0),
        ("alike.download_s", float("inf")),
        ("radio.received_power_w", float("inf")),
        ("radio.fading", "rician"),
        ("radio.admission", "none"),
        ("policy.metric", 7),
        ("policy.cardinality", ["exact"]),
        ("data.most_held", -1),
        ("trace", "half"),
        ("learning.eval_every", 0),
    ],
)
def test_a_number_that_cannot_be(run: Path, name: str, value: object) -> None:
    assert name.rpartition(".")[2] in refusal(numbered(run, name, value))


def numbered(run: Path, name: str, value: object) -> Path:
    """With another value of `resolved`; without the field, where it is ...."""
    resolved = json.loads((run / "run.json").read_text())["resolved"]
    *parts, last = (int(part) if part.isdigit() else part for part in name.split("."))
    part = resolved
    for each in parts:
        part = part[each]
    part[last] = value
    if value is ...:
        del part[last]
    return seal(run, resolved=resolved)


def test_a_number_that_is_not_there(run: Path) -> None:
    assert "run.json: resolved.radio.link_margin: field required" in refusal(numbered(run, "radio.link_margin", ...))
    numbered(run, "radio.link_margin", 3.0)
    assert "constants.parquet" in refusal(numbered(run, "alike.cycles", ...))  # where devices may differ


def test_constants_are_there_and_of_every_device(run: Path) -> None:
    numbered(run, "alike.priority", ...)
    for table, said in (
        ({"device": [0, 1]}, "lacks the column priority"),
        ({"device": [0, 1], "priority": [1.0, 1.0]}, "has 2 rows"),
        ({"device": [0, 1, 2, 4, 3], "priority": [1.0] * 5}, "a row for every device in order"),
        ({"device": [0, 1, 2, 3, 4], "priority": [1.0, 1.0, None, 1.0, 1.0]}, "no value missing"),
        ({"device": [0, 1, 2, 3, 4], "priority": [1.0, 1.0, 0.0, 1.0, 1.0]}, "the constant priority of device 2"),
    ):
        pl.DataFrame(table).write_parquet(run / "constants.parquet")
        assert said in refusal(seal(run))
    pl.DataFrame({"device": range(5), "priority": [1.0] * 5}).write_parquet(run / "constants.parquet")
    assert verify(seal(run)).ok


@pytest.mark.parametrize(("file", "column"), [("rounds", "planned"), ("devices", "used_labels"), ("devices", "gain")])
def test_wrong_columns_are_named(run: Path, file: str, column: str) -> None:
    rewrite(run, file, lambda frame: frame.with_columns(pl.lit("x").alias(column)))
    assert column in refusal(run)
    rewrite(run, file, lambda frame: frame.drop(column))
    assert f"lacks the column {column}" in refusal(run)


@pytest.mark.parametrize("file", ["rounds", "devices"])
def test_a_wrong_number_of_rows_or_labels(run: Path, file: str) -> None:
    rewrite(run, file, lambda frame: frame.head(-1))
    assert "rows" in refusal(run)
    if file == "devices":
        rewrite(
            run, file, lambda frame: pl.concat([frame, frame[:1]]).with_columns(pl.col("fresh_labels").list.head(2))
        )
        assert "fresh_labels" in refusal(run)


@pytest.mark.parametrize("classes", [9, 2**63, 2**70])  # the latter two fit no integer of the tables
def test_another_number_of_classes(run: Path, classes: int) -> None:
    numbered(run, "data.classes", classes)
    assert f"every list in the column fresh_labels must have {classes} entries" in refusal(run)
