"""docs/multiverse.md, from the tables alone: what was tried, how far it got, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from feelstream.quantities import counted, number
from feelstream.report.drawing.figures import save
from feelstream.run.files import usable_directory, write_atomically
from feelstream.studies.hu2023.claims.statements import SAVINGS
from feelstream.studies.hu2023.multiverse import drawing, words
from feelstream.studies.hu2023.multiverse.effects import Key, Leads, impossible
from feelstream.studies.hu2023.multiverse.energy import Energy, mean_of
from feelstream.studies.hu2023.multiverse.race import FIGURES, Race, claims_of
from feelstream.studies.hu2023.multiverse.settings import (
    SETTINGS,
    TITLES,
    Specification,
    levels,
    registration,
    schedules,
)  # fmt: skip

PAGE, DPI = "multiverse.md", 130
COMMAND = "feelstream multiverse --docs docs"


class Found:
    """What the page says of the race: every specification that has begun, with the seeds it has."""

    def __init__(self, energy: Energy, race: Race) -> None:
        self.energy, self.race = energy, race
        self.known: dict[str, dict[Specification, Leads]] = {}
        self.chances: dict[str, dict[Specification, dict[Key, float]]] = {}
        self.out: dict[str, dict[Specification, list[str]]] = {}
        for figure in FIGURES:
            own = {each: race.seeds_of(each, figure) for each in race.begun}
            leads = {each: race.leads(each, figure, n) for each, n in own.items() if n > 1}
            known = {each: found for each, found in leads.items() if found is not None}
            self.known[figure] = known
            self.chances[figure] = race.chances(known, figure) if len(known) > 1 else {each: {} for each in known}
            self.out[figure] = impossible(known, claims_of(figure), registration()["race"]["level"])

    @property
    def possible(self) -> dict[str, list[Specification]]:
        return {figure: [each for each in known if not self.out[figure][each]] for figure, known in self.known.items()}


def write(energy: Energy, race: Race, docs: Path) -> Path:
    """Write multiverse.md and its figures, as PNG under figures/."""
    found, pictures = Found(energy, race), usable_directory(docs / "figures")
    (pictures / ".lock").unlink(missing_ok=True)
    if energy.savings:
        save(drawing.savings_figure(energy), pictures, "multiverse-savings", formats=("png",), dpi=DPI)
    if has_chances(found):
        save(_chances_figure(found), pictures, "multiverse-claims", formats=("png",), dpi=DPI)
    path = usable_directory(docs) / PAGE
    write_atomically(path, lambda file: file.write_text(text(found), encoding="utf-8"))
    return path


def has_chances(found: Found) -> bool:
    return any(len(known) > 1 for known in found.known.values())


def _chances_figure(found: Found) -> Figure:
    keys = [key for known in found.known.values() for key in next(iter(known.values()), {})]
    units = {claim.key: claim.unit for figure in FIGURES for claim in claims_of(figure)}
    numbered = enumerate(found.race.begun, 1)  # as in the table
    named = {str(n): each for n, each in numbered if any(each in known for known in found.known.values())}
    rows = [*named.values()]
    chances = {each: _merged(found.chances, each) for each in rows}
    effects = {
        each: {
            key: float(np.mean(list(values.values())))
            for known in found.known.values()
            for key, values in known.get(each, {}).items()
        }
        for each in rows
    }
    return drawing.chances_figure(named, chances, effects, keys, units)


def _merged(chances: dict[str, dict[Specification, dict[Key, float]]], each: Specification) -> dict[Key, float]:
    return {key: value for own in chances.values() for key, value in own.get(each, {}).items()}


def summary(found: Found) -> str:
    """The findings, in a paragraph."""
    energy, kept = found.energy, found.energy.kept
    if kept is None:
        entered = energy.entered(1) if all(energy.is_played(each, 0) for each in schedules()) else None
        if entered is None:
            return "The stage without learning is under way."
        return (
            f"Of {len(schedules())} schedules, {len(entered)} could still have given the paper's 16 and 35 % of saved "
            f"energy in one run, after {registration()['energy']['stages'][0]} seeds. The race with learning begins "
            "when these have all of theirs."
        )
    sentence = (
        f"The paper leaves readings and settings open, so we searched them. Of {len(schedules())} schedules, "
        f"{len(kept)} save energy beyond chance and could have given the paper's 16 and 35 % in one run."
    )
    begun = [each for each in found.race.begun if any(each in known for known in found.known.values())]
    if not begun:
        return f"{sentence} None has run with learning yet."
    sentence += f" {counted(len(begun), 'specification')} with such a schedule ran with learning so far."
    whole = [each for each in begun if all(each in found.possible[figure] for figure in FIGURES)]
    sentence += f" All claims of all figures are still possible under {len(whole)} of them"
    return f"{sentence}{_least_likely(found, whole)}.\n\n{_ended(found)}"


def _least_likely(found: Found, whole: Sequence[Specification]) -> str:
    """Of those under which everything is possible: for which figure that is least likely, and how likely at most."""
    known = {
        figure: max((min(own[each].values()) for each in whole if own.get(each)), default=None)
        for figure, own in found.chances.items()
    }
    most = {figure: chance for figure, chance in known.items() if chance is not None}
    if not most:
        return ""
    figure = min(most, key=most.__getitem__)
    return f", but those of figure {figure} with a probability of at most {most[figure]:.2f}"


def _ended(found: Found) -> str:
    """Figure by figure: under how many specifications its claims are possible, and which one the race ended with."""
    finalists = found.race.finalists()
    lines = ["| claims of | possible under | most likely under |", "|---|---|---|"]
    for figure, known in found.known.items():
        best = f"`{finalists[figure]}`" if figure in finalists else "none"
        best = best if found.race.arrived(figure) is not None else "the search is not over"
        lines.append(f"| figure {figure} | {len(found.possible[figure])} of {len(known)} | {best} |")
    return "\n".join(lines)


def text(found: Found) -> str:
    rules = registration()
    parts = [
        "# The paper under other readings\n",
        f"{summary(found)}\n",
        words.AFTER,
        words.SAVINGS_FIGURE if found.energy.savings else "",
        words.ABOUT,
        "## What is tried\n",
        tried(),
        words.REGISTERED.format(
            first=rules["seeds"]["search"][0],
            last=rules["seeds"]["search"][1],
            steps=rules["race"]["most_steps"],
            rounds=rules["race"]["most_rounds"],
        ),
        "## Energy, without learning\n",
        words.ENERGY.format(first=rules["energy"]["stages"][0], last=rules["energy"]["stages"][1]),
        kept_table(found.energy),
        "## The race, with learning\n",
        words.RACE.format(
            wave=rules["race"]["wave"],
            stages=", ".join(str(n) for n in rules["race"]["stages"]),
            second=rules["race"]["go_on"][0],
            third=rules["race"]["go_on"][1],
        ),
        race_table(found),
    ]
    if has_chances(found):
        parts += [
            "![How likely each claim is](figures/multiverse-claims.png)\n\n*Every lead of every claim, against what is "
            "named behind the colon, under the specifications of the table above.* Numbers: mean effect in percentage "
            "points, or nat for loss; colour: P(effect > −margin) by the mixed model.\n",
            "## What the settings do\n",
            words.MIXED,
        ]
    parts += [
        "## Before this search\n",
        words.EARLIER,
        "## Origin\n",
        f"{progress(found)}\n",
        "This page is written from `docs/results/multiverse-energy.csv` and `docs/results/multiverse-learning.csv`; do "
        "not edit it. The command goes on from them; with `--turns 0` it only writes:\n",
        f"    {COMMAND}\n",
    ]
    return "\n".join(part for part in parts if part)


def progress(found: Found) -> str:
    """How far the search got."""
    if found.energy.kept is None:
        runs = sum(value is not None for own in found.energy.savings.values() for row in own.values() for value in row)
        return f"The search stands in its first stage, with {runs} comparisons of the proposed policy with random."
    done = {figure: [found.race.seeds_of(each, figure) for each in found.race.begun] for figure in FIGURES}
    runs = len(found.race.table)
    if not runs:
        return "The first stage is complete, the second has not begun."
    by_figure = "; ".join(f"figure {figure}: {_counts(own)}" for figure, own in done.items())
    return (
        f"The first stage is complete. The second has {counted(runs, 'run')} so far. Specifications by their seeds: "
        f"{by_figure}."
    )


def _counts(done: Sequence[int]) -> str:
    ran = sorted({n for n in done if n}, reverse=True)
    return ", ".join(f"{done.count(n)} with {n}" for n in ran) or "none"


def tried() -> str:
    lines = ["| setting | values |", "|---|---|"]
    lines += [f"| {TITLES[name]} | {', '.join(f'`{each}`' for each in levels(name))} |" for name in SETTINGS]
    return "\n".join(lines) + "\n"


def kept_table(energy: Energy) -> str:
    """The numbers of rounds that are kept, or possible so far, under each reading and width."""
    stages = registration()["energy"]["stages"]
    first = [each for each in schedules() if energy.is_played(each, 0)]
    if len(first) < len(schedules()):
        return ""
    entered = energy.entered(1)
    left = energy.left
    sentence = f"Of {len(schedules())} schedules with {stages[0]} seeds, {len(entered)} were possible"
    if energy.kept is None:
        done = len([each for each in entered if energy.is_played(each, 1)])
        sentence += (
            f"; {done} of these have their {stages[1]} seeds by now. Possible so far, with these numbers of rounds:"
        )
    else:
        sentence += f" and had {stages[1]}; {len(left)} are kept, with these rounds T:"
    widths = [drawing.WIDTHS.get(each, each) for each in levels("sigma")]
    lines = [f"| eligible | fresh | {' | '.join(widths)} |", "|" + "---|" * (2 + len(widths))]
    for eligible in levels("eligible"):
        for fresh in levels("fresh"):
            cells = [
                ", ".join(r for r in levels("T") if Specification(eligible, fresh, sigma, r) in left) or "–"
                for sigma in levels("sigma")
            ]
            lines.append(f"| `{eligible}` | `{fresh}` | {' | '.join(cells)} |")
    return f"{sentence}\n\n" + "\n".join(lines) + "\n\n" + nearest(energy, left)


def nearest(energy: Energy, left: Sequence[Specification]) -> str:
    """The schedules whose mean savings on i.i.d. data are nearest to the published ones."""
    published = np.array([*SAVINGS.values()])
    last = registration()["energy"]["stages"][-1]

    def distance(each: Specification) -> float:
        means = [np.mean(energy.values(each, index, last)) for index in range(len(published))]
        return float(np.abs(np.array(means) - published).max())

    lines = [
        "The eight whose savings on i.i.d. data are nearest to the published ones, with 95 % intervals of the mean:\n",
        "| schedule | seeds | n = 2 (paper: 16 %) | n = 4 (paper: 35 %) |",
        "|---|---|---|---|",
    ]
    for each in sorted(left, key=distance)[:8]:
        own = [
            mean_of(energy.values(each, index, last), energy.spread(each.T, index, last), 0.95)
            for index in range(len(published))
        ]
        cells = [f"{number(e.mean, 1)} % [{number(e.low or 0, 1)}, {number(e.high or 0, 1)}]" for e in own]
        schedule = f"`{each.eligible} {each.fresh} {each.sigma} {each.T}`"
        lines.append(f"| {schedule} | {len(energy.values(each, 0, last))} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def race_table(found: Found) -> str:
    if not found.race.begun:
        return ""
    lines = [
        f"| | {' | '.join(TITLES[name] for name in SETTINGS)} | figure 1 | figure 2 | figure 3 |",
        "|" + "---|" * (len(SETTINGS) + 4),
    ]
    for n, each in enumerate(found.race.begun, 1):
        cells = [_cell(found, each, figure) for figure in FIGURES]
        lines.append(f"| {n} | {' | '.join(each.choices.values())} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(found: Found, each: Specification, figure: str) -> str:
    n = found.race.seeds_of(each, figure)
    if each not in found.known[figure]:
        return counted(n, "seed") if n else "–"
    out, chances = found.out[figure][each], found.chances[figure][each]
    if out:
        return f"{counted(n, 'seed')}: impossible ({', '.join(out)})"
    likely = f", P ≤ {min(chances.values()):.2f}" if chances else ""
    return f"{counted(n, 'seed')}: possible{likely}"
