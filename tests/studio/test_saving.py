"""What is saved: run directories that verify, commands that repeat them byte for byte, and a race as one file.

The file holds the figures of the trace, nothing from elsewhere, and nothing that a name could break.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from builders import small
from commands import invoked
from small_plans import in_process, tables, two_arms

from feelstream.errors import RunError
from feelstream.run import Change, simulate
from feelstream.studio.lanes import LiveLane, StoredLane
from feelstream.studio.saving import command, file_name, race_figures, race_page, save, write_race
from feelstream.verification import verify


def test_saved_runs_verify_and_equal_those_of_the_command_line(tmp_path: Path, monkeypatch) -> None:
    learns = ["learning.engine=native", "data.samples=240"]
    changed = LiveLane("lyapunov, V = 0.5 from 4", small(*learns), 5, [Change(4, "policy.V", "0.5")])
    lanes = [changed, LiveLane("random", small(*learns, "policy.name=random"), 5)]
    for lane in lanes:
        for _ in range(3):  # half-way: saving plays it to its end
            lane.step()
    told: list[str] = []
    where = save(lanes, tmp_path / "saved", told.append)
    assert told[-1] == "random: round 8 of 8"
    (tmp_path / "again").mkdir()
    monkeypatch.chdir(tmp_path / "again")
    commands = (where / "commands.txt").read_text().splitlines()
    assert commands == [command(lane) for lane in lanes]
    for lane, line in zip(lanes, commands, strict=True):
        name = file_name(lane.label)
        (tmp_path / "again" / f"{name}.toml").write_bytes((where / f"{name}.toml").read_bytes())
        invoked(*shlex.split(line)[1:])
        assert tables(tmp_path / "again" / name) == tables(where / name)
        assert len(tables(where / name)) == 2
        assert verify(where / name).ok
        assert [row["accuracy"] for row in lane.rows] == simulate(
            lane.scenario, 5, changes=lane.changes
        ).rounds["accuracy"].to_list()[:3]  # fmt: skip


def test_saving_again_goes_on_and_stored_runs_are_not_saved(tmp_path: Path) -> None:
    lane = LiveLane("lyapunov", small(), 1)
    save([lane], tmp_path)
    before = tables(tmp_path / "lyapunov")
    save([lane], tmp_path)
    assert tables(tmp_path / "lyapunov") == before
    with pytest.raises(RunError, match="stored already"):
        save([StoredLane("old", simulate(small(), 1))], tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="it is a file"):
        save([lane], tmp_path / "file")


def figures_of(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def test_the_file_holds_the_race_and_fetches_nothing() -> None:
    runs = [
        simulate(small(f"policy.name={name}"), 3, changes=[Change(4, "policy.size", "3")])
        for name in ("lyapunov", "random")
    ]
    text = race_page([StoredLane(f"run {n}", run) for n, run in enumerate(runs)], "two")
    assert not re.search(r"https?:|//[a-z]|@import|url\(|src=", text)
    assert "default-src 'none'" in text
    figures = figures_of(text)
    assert figures["rounds"] == 8
    for lane, run in zip(figures["lanes"], runs, strict=True):
        assert run.devices is not None
        assert lane["changes"] == [[4, "size = 3"]]
        scheduled = run.devices.filter("scheduled").select("round", "device")
        assert lane["scheduled"] == [list(row) for row in scheduled.rows()]
        for round, step in enumerate(lane["steps"], start=1):
            rows = run.devices.filter(run.devices["round"] == round)
            assert step["stored"] == rows["stored"].to_list()
            assert step["queue"] == pytest.approx((1e3 * rows["queue_j"]).to_list(), rel=1e-2)
            taken = [device for device, state in zip(step["id"], step["state"], strict=True) if state >= 2]
            assert taken == rows.filter("scheduled")["device"].to_list()
            assert step["why"].endswith(".")


def test_a_race_under_way_is_saved_as_far_as_it_has_run(monkeypatch) -> None:
    lane = LiveLane("lane", small(), 3)
    with pytest.raises(RunError, match="no round has been played yet"):
        race_page([lane], "none")
    for _ in range(5):
        lane.step()
    assert figures_of(race_page([lane], "five"))["rounds"] == 5
    monkeypatch.setattr(LiveLane, "oldest", 3)
    with pytest.raises(RunError, match="no longer in the history"):
        race_page([lane], "rest")


def test_names_cannot_end_the_script_or_the_title() -> None:
    evil = "</script><script>alert(1)</script>"
    text = race_page([StoredLane(evil, simulate(small(), 3))], evil)
    assert text.count("<script") == 2
    assert "alert(1)</script>" not in text
    assert figures_of(text)["lanes"][0]["label"] == evil


def test_of_very_many_figures_a_sample_of_the_devices_with_all_that_were_scheduled_is_kept(monkeypatch) -> None:
    monkeypatch.setattr("feelstream.studio.saving.MOST_FIGURES", 1)
    run = simulate(small("system.devices=60", "data.samples=600"), 1)
    lane = race_figures([StoredLane("one", run)], "x")["lanes"][0]
    for round, step in enumerate(lane["steps"], start=1):
        assert 20 <= len(step["id"]) <= 22
        assert {device for at, device in lane["scheduled"] if at == round} <= set(step["id"])


def test_the_command_writes_comparisons_and_runs_and_refuses_in_a_sentence(tmp_path: Path) -> None:
    in_process(two_arms((3, 4), "system.rounds=4"), tmp_path / "results")
    simulate(small("trace.level=rounds"), 1).save(tmp_path / "bare")
    invoked("studio", tmp_path / "results", tmp_path / "bare", "--export", tmp_path / "race.html")
    figures = figures_of((tmp_path / "race.html").read_text(encoding="utf-8"))
    assert [(lane["label"], lane["seed"]) for lane in figures["lanes"]] == [("ours", 3), ("random", 3), ("bare", 1)]
    with pytest.raises(RunError, match="name the runs to export"):
        write_race([], tmp_path / "race.html")
    with pytest.raises(RunError, match=r"is a directory; name the file too, as in .*race\.html"):
        write_race([tmp_path / "bare"], tmp_path)
    with pytest.raises(RunError, match="is not a directory"):
        write_race([tmp_path / "bare"], tmp_path / "nowhere" / "race.html")
