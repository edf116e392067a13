"""The whole study, stage by stage: schedules, a spread-out part with learning, the search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from feelstream.experiment import Plan, Results
from feelstream.studies.hu2023.claims import energy_claims, figure_claims
from feelstream.studies.hu2023.multiverse import design, search
from feelstream.studies.hu2023.multiverse.outcomes import OUTCOMES, outcomes, specification_of, together
from feelstream.studies.hu2023.multiverse.plans import plan
from feelstream.studies.hu2023.multiverse.settings import LEARNING, Factor, Specification
from feelstream.studies.hu2023.paper import proposed, scenario

SCHEDULES, LEARNED = "multiverse-schedules", "multiverse-learning"
BATCH = 4  # specifications between two fits of the search
Play = Callable[[Plan], Results]


@dataclass(frozen=True)
class Sizes:
    """How much is played."""

    seeds: int = 5  # of every schedule
    learning: int = 24  # specifications with learning, spread out
    search: int = 12  # more of them, where the search leads
    learning_seeds: int = 3


@dataclass(frozen=True)
class Study:
    """The outcome: `energy` and `learned` are tables of OUTCOMES."""

    settings: Mapping[str, Factor]
    sizes: Sizes
    energy: pl.DataFrame
    learned: pl.DataFrame
    searched: tuple[Specification, ...]  # those of `learned` that the search chose
    results: tuple[Results, ...]

    @property
    def designed(self) -> pl.DataFrame:
        """`learned` without what the search chose: it looks where claims are reproduced, so shares would flatter."""
        searched = set(self.searched)
        keep = [specification_of(row) not in searched for row in self.learned.iter_rows(named=True)]
        return self.learned.filter(pl.Series(keep, dtype=pl.Boolean))

    @property
    def candidates(self) -> list[Specification]:
        """The schedules under which every saving is the paper's."""
        return fitting(self.energy)

    def all_claims_together(self) -> pl.DataFrame:
        """`together` for all claims, over the specifications with learning; energy as their schedules have it."""
        schedules = self.energy.select(pl.exclude("steps", "lr", "batch"))
        names = [name for name in LEARNING if name in schedules.columns]
        specifications = self.learned.select(LEARNING).unique(maintain_order=True)
        energy = specifications.join(schedules, on=names, how="inner").select(list(OUTCOMES))
        whole = pl.concat([self.learned, energy])
        return together(whole, [claim.key for claim in figure_claims()])


def fitting(energy: pl.DataFrame) -> list[Specification]:
    """The schedules under which all energy claims are reproduced."""
    rows = together(energy, [claim.key for claim in energy_claims()]).filter(pl.col("come_out") == pl.col("judged"))
    return [specification_of(row) for row in rows.iter_rows(named=True)]


def presets(settings: Mapping[str, Factor]) -> Specification:
    """The specification of the paper's presets; where a setting's values leave it out, the first value."""
    own = scenario(proposed("iid", 2)).as_dict()
    choices = {}
    for name in LEARNING:
        value = own
        for part in settings[name].field.split("."):
            value = value[part]
        values = settings[name].values
        choices[name] = next((each for each in values if each == str(value) or _equal(each, value)), values[0])
    return Specification.of(choices)


def _equal(text: str, value: object) -> bool:
    try:
        return isinstance(value, int | float) and float(text) == value
    except ValueError:
        return False


def study(
    settings: Mapping[str, Factor],
    sizes: Sizes,
    play: Play,
    overrides: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _: None,
) -> Study:
    """Play all stages. What was played before is not played again, whatever the sizes were then."""
    claims = energy_claims()
    schedules = design.factorial(settings)
    tell(f"{len(schedules)} schedules, {sizes.seeds} seeds")
    first = play(plan(SCHEDULES, schedules, claims, range(sizes.seeds), settings, overrides))
    energy = outcomes(first, schedules, claims, settings)
    candidates = fitting(energy)
    tell(f"all savings are the paper's under {len(candidates)} of them")
    if not sizes.learning:
        return Study(settings, sizes, energy, pl.DataFrame(schema=OUTCOMES), (), (first,))

    learning = [claim for claim in figure_claims() if claim.key not in {each.key for each in claims}]
    chosen = list(dict.fromkeys([presets(settings), *design.spread(settings, sizes.learning)]))

    def learn() -> tuple[Results, pl.DataFrame]:
        results = play(plan(LEARNED, chosen, learning, range(sizes.learning_seeds), settings, overrides))
        return results, outcomes(results, chosen, learning, settings)

    tell(f"{len(chosen)} specifications with learning, {sizes.learning_seeds} seeds")
    second, learned = learn()
    searched: list[Specification] = []
    everything = design.everything(settings, candidates)
    while len(searched) < sizes.search:
        n = min(BATCH, sizes.search - len(searched))
        batch = search.next_batch(learned, [claim.key for claim in learning], everything, settings, n)
        if not batch:
            break
        tell(f"the search: {len(batch)} more of {len(everything)} specifications that have the paper's savings")
        searched += batch
        chosen += batch
        second, learned = learn()
    return Study(settings, sizes, energy, learned, tuple(searched), (first, second))
