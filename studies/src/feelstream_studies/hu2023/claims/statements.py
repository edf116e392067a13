"""The claims of the paper as numbers per seed: only what it says, each with the clause that says it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import log2

import numpy as np

from feelstream.studies.claims import Ahead, Claim, Effects, Measured, PerSeed, Published, lead, share_saved
from feelstream.studies.results import SPANS, Span
from feelstream_studies.hu2023 import paper as reproduce
from feelstream_studies.hu2023.claims import quotes
from feelstream_studies.hu2023.claims.metrics import (
    clearer_claims,
    combined_claims,
    early_claims,
    gap_claims,
    late_claims,
)

SAVINGS = {2: 16.0, 4: 35.0}  # %, by devices a round


def all_claims() -> list[Claim]:
    """The paper's claims: those on its figures in the order of the panels, then that of its abstract."""
    return [*figure_claims(), *width_claims()]


def figure_claims() -> list[Claim]:
    """Those on the paper's figures alone."""
    return [
        *_accuracy(), *_saving(), *early_claims(), *late_claims(), *gap_claims(), *clearer_claims(), *combined_claims(),
    ]  # fmt: skip


def remaining_claims() -> list[Claim]:
    """Those on figure 1, with only devices eligible that hold data: what is left without random's empty slots."""
    return [*_accuracy(reproduce.with_data), *_saving(reproduce.with_data)]


def _same(label: str) -> str:
    return label


def _accuracy(arm: Callable[[str], str] = _same) -> Iterable[Claim]:
    spans: tuple[tuple[Span, str], ...] = (("mean", "over the whole run"), ("end", "at the end"))
    for panel, setting in (("1a", "iid"), ("1b", "3digit")):
        for n in reproduce.SIZES:
            ours, other = arm(reproduce.proposed(setting, n)), arm(reproduce.random(setting, n))
            for span, words in spans:
                yield Claim(
                    key=f"{panel}-n{n}-{span}",
                    panel=panel,
                    statement=f"{reproduce.IN_WORDS[setting]}, n = {n}: proposed more accurate than random {words}",
                    paper="ahead",
                    measure=f"accuracy, proposed − random, {SPANS[span]}",
                    unit="pp",
                    test=Ahead(),
                    arms=(ours, other),
                    effects=lead(ours, {"random": other}, "accuracy", span),
                    quote=quotes.ACCURACY[setting],
                )


def _saving(arm: Callable[[str], str] = _same) -> Iterable[Claim]:
    for panel, setting in (("1c", "iid"), ("1d", "3digit")):
        for n, saving in SAVINGS.items():
            ours, other = arm(reproduce.proposed(setting, n)), arm(reproduce.random(setting, n))
            yield Claim(
                key=f"{panel}-n{n}-saving",
                panel=panel,
                statement=f"{reproduce.IN_WORDS[setting]}, n = {n}: proposed saves energy against random",
                paper=f"{saving:g} %",
                measure="1 − proposed / random, energy per device over the whole run",
                unit="%",
                test=Published(saving, "%"),
                arms=(ours, other),
                effects=share_saved(ours, {"random": other}),
                fitted=arm is _same,
                quote=quotes.SAVING,
            )


def slope_by_width(leads: Sequence[PerSeed], widths: Sequence[float]) -> PerSeed:
    """By how much a lead grows with every halving of σ, by seed: the least-squares slope over −log₂ σ.

    All widths of a seed share its world, so what a seed does to all of them alike does not count.
    """
    x = np.array([-log2(width) for width in widths])
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    shared = [seed for seed in leads[0] if all(seed in each for each in leads)]
    return {seed: float(weights @ np.array([each[seed] for each in leads])) for seed in shared}


def width_claims() -> Iterable[Claim]:
    """The more concentrated in time the arrivals of a device are, the larger the lead over random."""
    n = reproduce.SIZES[0]
    for key, setting in (("1a-widths", "iid"), ("1b-widths", "3digit")):
        pairs = [
            tuple(reproduce.at_width(arm(setting, n), width) for arm in (reproduce.proposed, reproduce.random))
            for width in reproduce.WIDTHS
        ]

        def effects(measured: Measured, pairs: list[tuple[str, ...]] = pairs) -> Effects | None:
            leads = [measured.lead(ours, other, "accuracy", "mean") for ours, other in pairs]
            known = [each for each in leads if each is not None]
            if len(known) < len(leads):
                return None
            slopes = slope_by_width(known, reproduce.WIDTHS)
            return {"wider arrivals": slopes} if slopes else None

        yield Claim(
            key=key,
            panel="abstract",
            statement=f"{reproduce.IN_WORDS[setting]}, n = {n}: the lead of proposed over random is larger where "
            "arrivals are more concentrated in time",
            paper="especially then",
            measure="accuracy, proposed − random, mean over the rounds: least-squares slope per halving of σ, over "
            "σ = T/32, T/8, T/2",
            unit="pp",
            test=Ahead(),
            arms=tuple(arm for pair in pairs for arm in pair),
            effects=effects,
            quote=quotes.ABSTRACT,
        )
