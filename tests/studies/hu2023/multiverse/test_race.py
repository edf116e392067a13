"""The two stages on tables whose answers are known; nothing is simulated."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from feelstream.studies.hu2023 import stored
from feelstream.studies.hu2023.multiverse import energy, page
from feelstream.studies.hu2023.multiverse.effects import impossible, leads_of
from feelstream.studies.hu2023.multiverse.race import COLUMNS, FIGURES, KEY, Race, Wanted, arms_of, claims_of
from feelstream.studies.hu2023.multiverse.settings import SCHEDULE, Specification, registration, schedules, seeds

FITTING = "25"  # the number of rounds under which savings are the paper's


@cache
def savings() -> pl.DataFrame:
    """The published savings at T = 25, and 30 points more with every doubling; 8 and 4 points between seeds."""
    rng, rows = np.random.default_rng(0), []
    for schedule in schedules():
        for seed in seeds()[: registration()["energy"]["stages"][-1]]:
            row = {name: getattr(schedule, name) for name in SCHEDULE} | {"seed": seed}
            for name, (_, n) in zip(energy.NAMES, energy.COMPARED, strict=True):
                published, spread = (16, 8) if n == 2 else (35, 4)
                row[name] = published + 30 * np.log2(int(schedule.T) / 25) + rng.normal(0, spread)
            rows.append(row)
    return pl.DataFrame(rows, schema=energy.SCHEMA)


def test_schedules_that_save_what_the_paper_saves_are_kept_and_no_others():
    known = energy.Energy(savings())
    kept = {each.T for each in known.kept or ()}
    assert FITTING in kept
    assert kept <= {"20", "25", "30"}
    assert len([each for each in known.kept or () if each.T == FITTING]) >= 14  # of 16; 5 % of each of four tests miss
    assert {"80", "120", "300"}.isdisjoint(each.T for each in known.entered(1))


def test_a_prediction_interval_without_a_saving_is_not_enough():
    """Wide enough to hold 16 and 35 %, but the mean is 0."""
    rng = np.random.default_rng(1)
    noise = [pl.Series(name, rng.normal(0, 25, savings().height)) for name in energy.NAMES]
    known = energy.Energy(savings().with_columns(noise))
    first = schedules()[0]
    assert known.is_possible(first, 1, 0.95)
    assert len(known.kept or ()) < 0.05 * len(schedules())


def test_what_is_missing_is_named_and_the_table_is_the_same_in_any_order(tmp_path):
    rows = list(savings().filter(T=FITTING).iter_rows(named=True))
    for row in reversed(rows[:40]):
        half: dict[str, object] = {name: None if name.startswith("3digit") else value for name, value in row.items()}
        energy.add(tmp_path / "table.csv", [half])
    known = energy.Energy(energy.read(tmp_path / "table.csv"))
    first = Specification(*(rows[0][name] for name in SCHEDULE))
    assert known.missing(first, 0, seeds()[0]) == []
    assert known.missing(first, 1, seeds()[0]) == [2, 3]
    assert known.kept is None
    energy.add(tmp_path / "table.csv", rows[:40])
    energy.add(tmp_path / "once.csv", rows[:40])
    assert (tmp_path / "table.csv").read_bytes() == (tmp_path / "once.csv").read_bytes()


def run(wanted: Wanted, accuracy: float) -> dict[str, object]:
    """A run with a flat curve and a little noise of its seed and arm."""
    rng = np.random.default_rng([wanted.seed, len(wanted.arm), sum(map(ord, wanted.arm))])
    rounds = np.arange(5, int(wanted.specification.T) + 1, 5)
    values = np.clip(accuracy + 0.01 * rng.normal() + 0.0 * rounds, 0, 1)
    return {
        "specification": str(wanted.specification), "arm": wanted.arm, "seed": wanted.seed,
        "rounds": " ".join(map(str, rounds)), "accuracy": " ".join(f"{each:.4f}" for each in values),
        "loss": " ".join(f"{2 - each:.4f}" for each in values), "energy_mj": " ".join("10" for _ in rounds),
    }  # fmt: skip


def good(wanted: Wanted) -> float:
    """Random far behind under `any`, ahead under `with_data`; the metrics all alike."""
    if " random " in wanted.arm:
        return 0.6 if wanted.specification.eligible == "any" else 0.9
    return 0.8


@pytest.fixture(scope="module")
def raced(tmp_path_factory) -> Race:
    """A race whose first wave has its first seeds and has made one turn of the second stage."""
    path: Path = tmp_path_factory.mktemp("race") / "table.csv"
    known = energy.Energy(savings())
    race = Race(known, stored.read(path, COLUMNS))
    turn = race.next_runs()
    assert turn is not None
    assert {each.seed for each in turn} == {seeds()[0]}
    n = registration()["race"]["stages"][0]
    whole = [run for each in race.wave(0) for figure in FIGURES for run in race.missing(each, figure, n)]
    assert set(turn) <= set(whole)
    stored.add(path, (run(each, good(each)) for each in dict.fromkeys(whole)), COLUMNS, KEY)
    race = Race(known, stored.read(path, COLUMNS))
    turn = race.next_runs()
    assert turn is not None
    assert {each.seed for each in turn} == {seeds()[n]}
    stored.add(path, (run(each, good(each)) for each in turn), COLUMNS, KEY)
    return Race(known, stored.read(path, COLUMNS))


def test_a_wave_has_three_seeds_of_everything_before_anything_goes_on(raced):
    assert raced.begun == raced.wave(0)
    for each in raced.wave(0):
        assert all(raced.seeds_of(each, figure) >= 3 for figure in FIGURES)


def test_what_is_impossible_is_dropped_and_the_rest_goes_on(raced):
    """Figure 1 fails under `with_data` by 10 points, with a noise of 1."""
    on = raced.entered(0, 1, "1")
    assert on is not None
    assert {each.eligible for each in on} == {"any"}
    assert len(on) == min(registration()["race"]["go_on"][0], len([e for e in raced.wave(0) if e.eligible == "any"]))
    assert raced.finalists() == {}  # nothing has all seeds


def test_a_figure_has_a_finalist_once_all_of_its_last_stage_have_run(raced, tmp_path):
    known, path, stages = energy.Energy(savings()), tmp_path / "table.csv", registration()["race"]["stages"]
    stored.add(path, raced.table.iter_rows(named=True), COLUMNS, KEY)

    def play(specifications, n: int, path: Path = path, accuracy=good) -> Race:
        race = Race(known, stored.read(path, COLUMNS))
        wanted = [each for one in specifications for each in race.missing(one, "1", n)]
        stored.add(path, (run(each, accuracy(each)) for each in wanted), COLUMNS, KEY)
        return Race(known, stored.read(path, COLUMNS))

    last = play(raced.entered(0, 1, "1"), stages[1]).entered(0, 2, "1")
    assert last is not None
    assert len(last) == 2
    worse = tmp_path / "worse.csv"
    worse.write_bytes(path.read_bytes())
    failed = play(last, stages[2], worse, lambda wanted: 0.2 if "random" not in wanted.arm else 0.9)
    assert failed.arrived("1") == []
    assert failed.finalists() == {}
    said = page.summary(page.Found(known, failed))
    assert "figure 1 | 6 of 8 | none |" in said  # the two of the last stage are out, and nobody is left to follow them
    assert re.search(r"figure 2 \| .* \| the search is not over \|", said)
    one = play(last[:1], stages[2])
    assert one.arrived("1") is None
    assert one.seeds_of(last[0], "1") == len(seeds())
    assert one.finalists() == {}  # the other may still be the more likely one
    both = play(last, stages[2])
    assert list(both.finalists()) == ["1"]
    assert both.finalists()["1"] in last


def test_the_page_says_how_far_the_race_got(raced):
    found = page.Found(energy.Energy(savings()), raced)
    text = page.text(found)
    assert f"{len(raced.table)} runs so far" in text
    assert text.count("impossible (1a-n2-mean") == len([e for e in raced.wave(0) if e.eligible == "with_data"])
    assert text.count("| the search is not over |") == 3  # of all figures


def test_impossible_has_the_size_that_its_level_says():
    """Effects whose truth is just at the bound are dropped about once in 200 times a lead."""
    rng = np.random.default_rng(5)
    claims = [claim for claim in claims_of("1") if claim.key == "1a-n2-mean"]
    dropped = 0
    for _ in range(250):
        known = {each: {("1a-n2-mean", "random"): dict(enumerate(rng.normal(0, 3, 3)))} for each in schedules()[:8]}
        dropped += sum(bool(out) for out in impossible(known, claims, 0.99).values())
    assert 0.001 < dropped / 2000 < 0.012


def test_every_lead_of_every_claim_is_a_number_per_seed(raced):
    first = raced.wave(0)[0]
    for figure in FIGURES:
        leads = raced.leads(first, figure, 3)
        assert leads is not None
        assert {key for key, _ in leads} == {claim.key for claim in claims_of(figure)}
        assert all(set(own) == set(seeds()[:3]) for own in leads.values())
        assert set(arms_of(figure)) == {arm for claim in claims_of(figure) for arm in claim.arms}
    assert leads_of([], None) == {}  # pyright: ignore[reportArgumentType]
