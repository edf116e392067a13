"""The finding says what the results say, and leaves out what they do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from feelstream.experiment import Results
from feelstream.report.origin import Origin
from feelstream.run.trace import ROUNDS
from feelstream.studies.claims import judged
from feelstream_studies.hu2023 import page
from feelstream_studies.hu2023 import paper as reproduce
from feelstream_studies.hu2023.claims import all_claims
from feelstream_studies.hu2023.conclusion import conclusion, empty_share

SEEDS, T = 6, 9
NOISE = np.array([-0.002, -0.001, -0.0005, 0.0005, 0.001, 0.002])


class Constructed(Results):
    """Results whose tables are given: accuracy and energy by kind of arm, and which scheduled slots were empty."""

    def __init__(self, name: str, levels: dict[str, tuple[float, float]], empty: dict[str, float]) -> None:
        plan = reproduce.plan(name, range(SEEDS))
        super().__init__(plan, {(arm.label, seed): Path() for arm in plan.arms for seed in plan.seeds}, [])
        self.levels, self.empty = levels, empty

    def kind(self, label: str) -> str:
        return ("proposed" if "proposed" in label else "random") + (" with data" if "with data" in label else "")

    def rounds(self) -> pl.DataFrame:
        frames = []
        for arm in self.plan.arms:
            accuracy, energy = self.levels[self.kind(arm.label)]
            for seed in self.plan.seeds:
                given = {"round": range(1, T + 1), "accuracy": [accuracy + NOISE[seed]] * T}
                given["energy_mean_cum_j"] = [energy * (1 + NOISE[(seed + 1) % SEEDS])] * T
                frame = pl.DataFrame(
                    [pl.Series(column, given.get(column, [None] * T)).cast(kind) for column, kind in ROUNDS.items()]
                )
                frames.append(frame.select(pl.lit(arm.label).alias("arm"), pl.lit(seed).alias("seed"), pl.all()))
        return pl.concat(frames)

    def devices(self, arm, seed, columns):
        none = round(100 * self.empty[self.kind(arm)])
        return pl.DataFrame({"stored": [0] * none + [1] * (100 - none), "scheduled": [True] * 100})


EMPTY = {"random": 0.41, "proposed": 0.02, "random with data": 0.0, "proposed with data": 0.0}
LITERAL = {"proposed": (0.9, 0.84), "random": (0.73, 1.0)}


def said(name: str, levels: dict[str, tuple[float, float]]) -> str:
    results = Constructed(name, levels, EMPTY)
    return conclusion(results, judged(results.plan, results.rounds(), all_claims()))


def whole(left: tuple[float, float]) -> dict[str, tuple[float, float]]:
    return LITERAL | {"proposed with data": left, "random with data": (0.9, 1.0)}


@pytest.fixture(scope="module", autouse=True)
def figure_1_alone():
    """The plan of everything that figure 1 needs, without the other figures."""
    kept = dict(reproduce.FIGURES)
    for key in ("fig2", "fig3", "fig1-widths"):
        del reproduce.FIGURES[key]
    yield
    reproduce.FIGURES.clear()
    reproduce.FIGURES.update(kept)


def test_only_scheduled_devices_count_as_slots():
    devices = pl.DataFrame({"stored": [0, 5, 0, 0, 7], "scheduled": [True, True, False, True, True]})
    assert empty_share(devices) == pytest.approx(0.5)
    assert empty_share(devices.filter(~pl.col("scheduled"))) is None


def test_a_lead_that_vanishes_is_mostly_empty_slots_and_the_saving_remains():
    text = said("all", whole((0.897, 0.72)))
    assert "Of 8 claims of the paper besides the fitted energy savings, 8 reproduce (1a ×4, 1b ×4)" in text
    assert "16 % (n = 2) and 16 % (n = 4) against the paper's 16 % and 35 %" in text
    assert "The lead over random is mostly random's empty slots: 41 % of random's slots, and 2 % of" in text
    assert "is +17.0 percentage points as the paper is written and −0.3 when neither policy" in text
    assert "What remains then is the saving of energy, 28 % (n = 2) and 28 % (n = 4); in accuracy" in text
    assert "ahead in 0 and behind in 8 of 8 tests" in text


def test_a_lead_that_stays_is_not_called_empty_slots():
    text = said("all", whole((0.9 + 0.16, 0.72)))
    assert "is partly random's empty slots" in text
    assert "ahead in 8 and behind in 0 of 8 tests" in text


def test_a_saving_that_is_lost_is_not_said_to_remain():
    assert "What remains then is no certain saving of energy, −5 %" in said("all", whole((0.9, 1.05)))


def test_the_page_has_the_claims_what_remains_and_what_was_not_reproduced(monkeypatch, tmp_path):
    worse = whole((0.9, 0.72)) | {"proposed": (0.7, 1.2)}
    results = Constructed("all", worse, EMPTY)
    made = Origin("", "feelstream reproduce all", "2026-11-19 10:00 UTC", "0.1.0", {"Seeds": "0–5"})
    monkeypatch.setattr(page, "origin", lambda results, command: made)
    monkeypatch.setattr(page, "panel_figures", lambda figures, rounds: [(figure.key, None) for figure in figures])
    monkeypatch.setattr(page, "write_page", lambda directory, name, text, pictures: text)
    findings = [replace(finding, p_flip=1.0) for finding in judged(results.plan, results.rounds(), all_claims())]
    text = str(page.write_docs(tmp_path, results, findings))
    assert text.count("| figure | claim | paper |") == 2  # the paper's claims, and what remains
    assert "**Not reproduced.**\n\n- 1a: " in text
    assert "- †: used to choose T and σ, therefore no evidence\n- the permutation test does not confirm" in text
    assert "so 1c and 1d are fits and no evidence" in text
    assert "\n\n\n" not in text


def test_without_the_other_runs_there_is_the_first_sentence_alone():
    text = said("fig1", LITERAL)
    assert text.startswith("Of 8 claims")
    assert "empty slots" not in text
    assert "remains" not in text
