"""What the paper says of its importance metrics: figures 2 and 3."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from feelstream.studies.claims import Ahead, Claim, Effects, Measured, NotBehind, PerSeed, lead
from feelstream.studies.results import SPANS
from feelstream_studies.hu2023 import paper as reproduce
from feelstream_studies.hu2023.claims import quotes
from feelstream_studies.hu2023.claims.resampling import averaged

MARGIN = 2.0  # percentage points: "similar" is no more than this behind; fixed before the runs
SETTINGS = {"2a": "iid", "2b": "2digit", "3a": "minority", "3b": "minority-uniform"}


def early_claims() -> Iterable[Claim]:
    for panel in ("2a", "2b"):
        setting = SETTINGS[panel]
        amount, other = (reproduce.metric(setting, name) for name in ("amount", "dissimilarity"))

        def effects(measured: Measured, amount: str = amount, other: str = other) -> Effects | None:
            early = measured.lead(amount, other, "accuracy", "early")
            late = measured.lead(amount, other, "accuracy", "late")
            if early is None or late is None:
                return None
            return {"dissimilarity": early, "its own late lead": _minus(early, late)}

        yield Claim(
            key=f"{panel}-early",
            panel=panel,
            statement=f"{reproduce.IN_WORDS[setting]}: amount alone ahead of dissimilarity alone early, and more so "
            "than late",
            paper="larger gap early",
            measure=f"accuracy, lead of amount over dissimilarity, {SPANS['early']}; that minus {SPANS['late']}",
            unit="pp",
            test=Ahead(),
            arms=(amount, other),
            effects=effects,
            quote=quotes.EARLY,
        )


def late_claims() -> Iterable[Claim]:
    for panel in ("2a", "2b"):
        setting = SETTINGS[panel]
        combined, amount, own = (reproduce.metric(setting, name) for name in reproduce.METRICS)
        yield Claim(
            key=f"{panel}-late",
            panel=panel,
            statement=f"{reproduce.IN_WORDS[setting]}: dissimilarity alone as accurate as both others late",
            paper="similar and even higher",
            measure=f"accuracy, lead of dissimilarity over amount and over combined, {SPANS['late']}",
            unit="pp",
            test=NotBehind(MARGIN, "pp"),
            arms=(own, amount, combined),
            effects=lead(own, {"amount": amount, "combined": combined}, "accuracy", "late"),
            quote=quotes.LATE,
        )


def combined_claims() -> Iterable[Claim]:
    for panel, setting in SETTINGS.items():
        combined, amount, other = (reproduce.metric(setting, name) for name in reproduce.METRICS)
        yield Claim(
            key=f"{panel}-combined",
            panel=panel,
            statement=f"{reproduce.IN_WORDS[setting]}: the combined metric as accurate as each of its parts over the "
            "whole run",
            paper="benefits of both",
            measure=f"accuracy, lead of combined over amount and over dissimilarity, {SPANS['mean']}",
            unit="pp",
            test=NotBehind(MARGIN, "pp"),
            arms=(combined, amount, other),
            effects=lead(combined, {"amount": amount, "dissimilarity": other}, "accuracy", "mean"),
            quote=quotes.COMBINED,
        )


def _arms() -> tuple[str, str, str, str]:
    """amount and dissimilarity under truncated-normal arrivals, then under uniform ones."""
    normal, uniform = SETTINGS["3a"], SETTINGS["3b"]
    return (
        reproduce.metric(normal, "amount"), reproduce.metric(normal, "dissimilarity"),
        reproduce.metric(uniform, "amount"), reproduce.metric(uniform, "dissimilarity"),
    )  # fmt: skip


def shrinkage(means: NDArray[np.float64]) -> float:
    """Mean over rounds of |a − d| under normal, minus the same under uniform arrivals; (4, rounds) as `_arms`."""
    return float(np.abs(means[0] - means[1]).mean() - np.abs(means[2] - means[3]).mean())


def gap_claims() -> Iterable[Claim]:
    def effects(measured: Measured) -> Effects | None:
        found = averaged(measured, _arms(), "loss", shrinkage)
        return None if found is None else {"truncated-normal arrivals": found}

    yield Claim(
        key="3b-gap",
        panel="3b",
        statement="minority digits: the gap between amount alone and dissimilarity alone is smaller under uniform "
        "arrivals",
        paper="smaller",
        measure="loss, distance between the averaged curves of amount and dissimilarity (absolute difference, mean "
        "over the rounds), under truncated-normal minus under uniform arrivals; resampled by seed",
        unit="nat",
        test=Ahead(),
        arms=_arms(),
        effects=effects,
        quote=quotes.GAP,
    )


def clearer_claims() -> Iterable[Claim]:
    amount, own, uniform_amount, uniform_own = _arms()

    def effects(measured: Measured) -> Effects | None:
        before = measured.lead(own, amount, "loss", "late")
        after = measured.lead(uniform_own, uniform_amount, "loss", "late")
        return None if before is None or after is None else {"truncated-normal arrivals": _minus(after, before)}

    yield Claim(
        key="3b-clearer",
        panel="3b",
        statement="minority digits: the late gain of dissimilarity alone over amount alone is larger under uniform "
        "arrivals",
        paper="more clear",
        measure=f"loss, lead of dissimilarity over amount, {SPANS['late']}, under uniform minus under truncated-normal "
        "arrivals",
        unit="nat",
        test=Ahead(),
        arms=_arms(),
        effects=effects,
        quote=quotes.CLEARER,
    )


def _minus(one: PerSeed, other: PerSeed) -> PerSeed:
    return {seed: one[seed] - other[seed] for seed in one if seed in other}
