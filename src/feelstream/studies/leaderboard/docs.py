"""docs/leaderboard.md: tables, Pareto plots and what they say, for several scenarios, dated by their runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from feelstream.errors import RunError
from feelstream.experiment import Plan, Results, comparison
from feelstream.quantities import QUANTITIES, counted, meanings
from feelstream.report.comparison import markdown_table, worlds
from feelstream.report.drawing.figures import save
from feelstream.report.drawing.pareto import pareto_figure
from feelstream.report.origin import origin
from feelstream.run.files import write_atomically
from feelstream.scenario.files import presets
from feelstream.scenario.overrides import Override
from feelstream.studies.leaderboard import protocols
from feelstream.studies.leaderboard.words import discussion

WITHIN_BUDGET = """\
Protocol *quality under budget*: only policies under which no device exceeded its budget over the run, with any seed;
the most accurate first. "Worst device" is the greatest mean energy of a device over its budget.
"""

COST = f"""\
Protocol *cost to target*: energy per device until the first test with {protocols.TARGETS[0]} % accuracy, or
{protocols.TARGETS[1]} % where nobody has the former with every seed; only policies that got there with every seed, the
cheapest {protocols.SHOWN}. Medians over seeds.
"""

ROBUSTNESS = """\
Protocol *robustness*: percentage points behind the most accurate entry of each board, budgets aside, at the board where
that is largest, for entries that are on all boards; and the largest share of devices over budget.
"""

HINDSIGHT = """\
How much less fresh data a policy put to use than the best schedule could have with the energy that each device spent,
by a proven upper bound ([feelstream bound](policies.md)): so the true gap is at most this. Runs without learning, in
the one world in which the bound holds: `data.fresh = per_round` and `data.eligible = any`. It says nothing of class
balance, which several policies choose by.
"""

HOW_TO_READ = """\
## How to read it

With the same seed every policy receives the same arrivals, CPU frequencies and channels, so they are compared in
pairs, by two-sided paired t-tests at 5 % with Holm's correction over all policies of a table: against the one with
the best mean, and against `random`. The best is picked by the data, so its own lead is somewhat flattered. Values
are means over seeds ± half of the 95 % t interval, not corrected; an interval may reach past what is possible.
Nothing is said of fewer than 5 seeds, nor where all seeds agree to the last digit. The Pareto front is that of the
means: near neighbours may change places with other seeds.

Each scenario is run twice: with `data.eligible = any`, the paper's reading, a policy may schedule devices that hold
no data yet, and pays for them; with `with_data` nobody can.

The policies do not all decide the same things. `lyapunov_joint` and `balanced_joint` also set CPU frequencies, band and
power, and `ocean` band and power, while the others compute at whatever frequency a device offers and send with P0/β.
`gain=oracle` knows this round's channel gains, which no server knows. `select_all` and `fedcs` with size = K
ignore the number of devices per round and bound what participation can bring. `fedcs`, `ocean`, `myopic_energy` and
`cardinality=cap` may schedule fewer devices than that number, down to none, as may `balanced_joint` and `fedcgd`, and
`balanced` where fewer hold data. `lyapunov_joint` with the largest size is `select_all` slowed down: it trains as many
as fit, each no faster than the deadline asks for.
At the paper's constants no policy that schedules exactly 2 or 4 devices a round at the frequencies they offer can
keep the budget, so an "energy / budget" above 1 is no fault of one policy there. What each rule knows and ignores
is in [the catalogue](policies.md).

`balanced` and `ocean`, whose weight between energy and learning (price, V) decides what they spend, are entered as
they come, and once more with that weight set by one rule for both: that it spends as much as `lyapunov` does with
the paper's V (or as near as it can come), found on seeds 1000 and 1001 without learning. Those entries, named with
the weight, compare accuracy at equal energy. What `lyapunov_joint` spends hardly depends on its V.

Where accuracy is not tested in every round, rounds and energy to an accuracy are those of the first test that finds
it, which may be late by up to one step between tests.
"""


def write_leaderboard(
    directory: Path,
    boards: Mapping[tuple[str, str], Results],
    changes: Mapping[tuple[str, str], Sequence[str]],
    options: Sequence[str],
    hindsight: Mapping[str, Results] | None = None,
) -> Path:
    """Write leaderboard.md and its plots, figures/pareto-SCENARIO-READING.png.

    boards: results by scenario and data.eligible, in the order of the page. changes: `section.field=value` that each
    was run with, of two for one field the last. options: what the command was given. hindsight: by scenario, the runs
    of `protocols.hindsight_plan`.
    """
    pictures = directory / "figures"
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise RunError(f"cannot use the directory {pictures}: {problem.strerror}") from problem
    made = {name: origin(results) for name, results in boards.items()}
    days = sorted({entry.finished.partition(" ")[0] for entry in made.values()})
    seeds = max(len(results.plan.seeds) for results in boards.values())
    dates = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    parts = [
        "# Leaderboard\n",
        f"{_made_of(boards)}\n",
        *_protocols(boards, hindsight or {}),
        "## The most accurate, whatever it costs\n",
        *(_winner(*board, results) for board, results in boards.items()),
        "",
        HOW_TO_READ,
        "\n".join(f"- **{name}**: {text}" for name, text in meanings(QUANTITIES.values()).items()) + "\n",
        *(_section(*board, results, changes[board], pictures) for board, results in boards.items()),
        "## Origin\n",
        f"Runs of {dates}, {seeds} seed{'s' * (seeds != 1)}. This page is written by a command; do not edit it:\n",
        f"    {shlex.join(['feelstream', 'leaderboard', *options])}\n",
        *(
            f"- `{name}`, {reading}: " + "; ".join(f"{k}: {v}" for k, v in entry.facts.items())
            for (name, reading), entry in made.items()
        ),
    ]
    path = directory / "leaderboard.md"
    text = "\n".join(parts).rstrip() + "\n"
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path


def _made_of(boards: Mapping[tuple[str, str], Results]) -> str:
    """Which scenarios there are, with how many seeds, and from when: boards may have been made at different times."""
    said = []
    for (name, reading), results in boards.items():
        missing = f", {len(results.failures)} runs missing" if results.failures else ""
        day = origin(results).finished.partition(" ")[0]
        seeds = counted(len(results.plan.seeds), "seed")
        said.append(f"- `{name}`, eligible {reading}: {len(results.plan.arms)} entries, {seeds}{missing}, {day}")
    return "\n".join(said)


def _protocols(boards: Mapping[tuple[str, str], Results], hindsight: Mapping[str, Results]) -> list[str]:
    """What is asked first, by its name."""
    found: dict[tuple[str, str], tuple[Plan, pl.DataFrame]] = {
        board: (results.plan, comparison.summarise(results)) for board, results in boards.items()
    }
    parts = ["## Within the budget\n", WITHIN_BUDGET]
    for (name, reading), (plan, summary) in found.items():
        parts += [f"**{name}, eligible: {reading}**\n", protocols.under_budget(plan, summary)]
    parts += ["## Cost to target\n", COST]
    for (name, reading), (plan, summary) in found.items():
        parts += [f"**{name}, eligible: {reading}**\n", protocols.cost_to_target(plan, summary)]
    parts += ["## Robustness\n", ROBUSTNESS, protocols.robustness(found)]
    for name, results in hindsight.items():
        parts += [f"## Against the best in hindsight: {name}\n", HINDSIGHT, protocols.hindsight_table(results)]
    return parts


def _winner(name: str, reading: str, results: Results) -> str:
    """The first thing to know of a board."""
    runs = comparison.per_run(results)
    said = discussion(results.plan, runs, comparison.summarise(results, runs))
    return f"- **{name}, eligible: {reading}.** {said[0] if said else 'Nothing to rank.'}"


def _section(name: str, reading: str, results: Results, changes: Sequence[str], pictures: Path) -> str:
    runs = comparison.per_run(results)
    summary = comparison.summarise(results, runs)
    about = presets().get(name, "")
    parts = [f"## {name}, eligible: {reading}\n", f"{about}\n" if about else ""]
    changed = {Override.parse(change).field: change for change in changes}
    if changed:
        parts.append(f"Changed from the scenario: {', '.join(f'`{change}`' for change in changed.values())}.\n")
    for number, (title, points) in enumerate(shown := worlds(results.plan, summary), start=1):
        picture = f"pareto-{Path(name).stem}-{reading}{'' if len(shown) == 1 else f'-{number}'}"
        save(pareto_figure(points), pictures, picture, formats=("png",))
        parts.append(f"![Accuracy against energy, {title}](figures/{picture}.png)\n")
    parts.append(markdown_table(results.plan, summary))
    parts.append("\n".join(f"- {sentence}" for sentence in discussion(results.plan, runs, summary)) + "\n")
    if results.failures:
        parts.append(f"{len(results.failures)} runs failed and are missing from these numbers.\n")
    return "\n".join(part for part in parts if part)
