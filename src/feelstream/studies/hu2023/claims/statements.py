"""The claims of the paper as numbers per seed. Its text is paraphrased, but for its abstract, which is quoted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from feelstream.experiment.series import SPANS, Span
from feelstream.quantities import QUANTITIES
from feelstream.studies.claims import Ahead, Claim, Effects, Measured, Published, lead, share_saved
from feelstream.studies.hu2023 import paper as reproduce

ABSTRACT = (
    "Our proposed algorithm based on the Lyapunov optimization framework outperforms alternative methods without "
    "considering time-varying data importance, especially when the generation of training data shows strong temporal "
    "correlation."
)
SAVINGS = {2: 16.0, 4: 35.0}  # %, by devices a round


def all_claims() -> list[Claim]:
    """The paper's claims, in the order of its panels."""
    return [*_accuracy(), *_saving(), *_metrics(), *_gap()]


def remaining_claims() -> list[Claim]:
    """Those on figure 1, with only devices eligible that hold data: what is left without random's empty slots."""
    return [*_accuracy(reproduce.with_data), *_saving(reproduce.with_data)]


def energy_claims() -> list[Claim]:
    """Those that need no learning."""
    return list(_saving())


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
            )


def _metrics() -> Iterable[Claim]:
    for panel, setting, column in (
        ("2a", "iid", "accuracy"),
        ("2b", "2digit", "accuracy"),
        ("3a", "minority", "loss"),
        ("3b", "minority-uniform", "loss"),
    ):
        combined, amount, dissimilarity = (reproduce.metric(setting, name) for name in reproduce.METRICS)
        where, better = reproduce.IN_WORDS[setting], {"accuracy": "higher accuracy", "loss": "lower loss"}[column]
        if panel != "3b":
            yield Claim(
                key=f"{panel}-early",
                panel=panel,
                statement=f"{where}: amount alone ahead of dissimilarity alone early ({better})",
                paper="ahead",
                measure=f"{column}, lead of amount over dissimilarity, {SPANS['early']}",
                unit=QUANTITIES[column].gap_unit,
                test=Ahead(),
                arms=(amount, dissimilarity),
                effects=lead(amount, {"dissimilarity": dissimilarity}, column, "early"),
            )
        yield Claim(
            key=f"{panel}-late",
            panel=panel,
            statement=f"{where}: dissimilarity alone ahead of both others late ({better})",
            paper="ahead of both",
            measure=f"{column}, lead of dissimilarity over amount and over combined, {SPANS['late']}",
            unit=QUANTITIES[column].gap_unit,
            test=Ahead(),
            arms=(dissimilarity, amount, combined),
            effects=lead(dissimilarity, {"amount": amount, "combined": combined}, column, "late"),
        )


def _gap() -> Iterable[Claim]:
    normal = tuple(reproduce.metric("minority", name) for name in ("amount", "dissimilarity"))
    uniform = tuple(reproduce.metric("minority-uniform", name) for name in ("amount", "dissimilarity"))

    def shrinkage(measured: Measured) -> Effects | None:
        before = measured.distance(normal[0], normal[1], "loss")
        after = measured.distance(uniform[0], uniform[1], "loss")
        if before is None or after is None:
            return None
        shared = {seed: before[seed] - after[seed] for seed in before if seed in after}
        return {"truncated-normal arrivals": shared} if shared else None

    yield Claim(
        key="3b-gap",
        panel="3b",
        statement="minority digits: the gap between amount alone and dissimilarity alone is smaller under uniform "
        "arrivals",
        paper="smaller",
        measure="loss, distance between the curves of amount and dissimilarity (absolute difference, mean over the "
        "rounds), under truncated-normal minus under uniform arrivals",
        unit="nat",
        test=Ahead(),
        arms=(*normal, *uniform),
        effects=shrinkage,
        wording=f"paraphrase; the abstract says: “{ABSTRACT}”",
    )
