"""docs/leaderboard.md: tables, Pareto plots and what they say, for several scenarios, dated by their runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from feelstream.studies.pages import markdown_table, origin, pareto_figure, save, worlds, write_atomically
from feelstream.studies.plans import Override, Plan, presets
from feelstream.studies.results import QUANTITIES, Results, RunError, counted, meanings, per_run, summarise
from feelstream_studies.leaderboard import protocols
from feelstream_studies.leaderboard.words import discussion

SERVER = """\
All entries have the paper's server, FedAvg. What the README shows of `balanced_joint`, 93.5 % in `paper-3digit`, is
[with longer steps of the server](within-budget-longer.md) and on seeds 11000 to 11019, where it has 91.9 % with FedAvg.
"""

WITHIN_BUDGET = """\
Protocol *quality under budget*: this lists only policies under which no device exceeded its budget with any seed, the
most accurate first. "Worst device" is the mean energy over budget of the device that spent most of its budget, in each
seed by itself, and the mean of that over seeds.
"""

COST = f"""\
Protocol *cost to target*: energy per device until the first test with {protocols.TARGETS[0]} % accuracy, or
{protocols.TARGETS[1]} % if no policy got there with every seed. This lists the {protocols.SHOWN} cheapest policies
that reached it with every seed. Values are medians over seeds.
"""

ROBUSTNESS = """\
Protocol *robustness*: for each entry that is on all boards, how many percentage points it is behind the most accurate
entry of a board, regardless of budgets, on the board where it is furthest behind; and the largest share of devices over
budget.
"""

HINDSIGHT = """\
How much less fresh data a policy used than the best schedule could have used with the energy that each device spent.
The best is a proven [upper bound](policies.md#how-far-from-the-best), so the true gap is at most this. These runs do
not learn, and use the one world in which the bound holds: `data.fresh = per_round` and `data.eligible = any`. The gap
says nothing about class balance, on which several policies base their choice.
"""

HOW_TO_READ = """\
## How to read it

With the same seed, every policy receives the same arrivals, CPU frequencies and channels, so policies are compared in
pairs. The tests are two-sided paired t-tests at 5 % with Holm's correction over all policies of a table, against the
policy with the best mean and against `random`. The best is picked from the same data, which flatters its lead a little.
Values are means over seeds ± half of the 95 % t interval, uncorrected; an interval may reach past what is possible.
There is no verdict below 5 seeds, nor where all seeds agree to the last digit. The Pareto front is that of the means:
with other seeds, close neighbours may swap places.

Each board says who may be scheduled. With `data.eligible = any`, the paper's reading, a policy may schedule devices
that hold no data yet, and pays for them. With `with_data` it cannot.

What a server that remembers adds is on [another page](within-budget-results.md). The policies do not all decide the
same things. `lyapunov_joint` and `balanced_joint` also set CPU frequencies, band and power, and `ocean` sets band and
power. The others compute at whatever frequency a device offers and send with P0/β. `gain=oracle` knows this round's
channel gains, which no server knows. `select_all` and `fedcs` with size = K ignore the number of devices per round and
bound what participation can bring. `fedcs`, `ocean`, `myopic_energy`, `cardinality=cap`, `balanced_joint` and `fedcgd`
may schedule fewer devices than that number, down to none, and so may `balanced` where fewer hold data. `lyapunov_joint`
with the largest size is `select_all` slowed down: it trains as many as fit, each no faster than the deadline requires.

At the paper's constants, no policy that schedules exactly 2 or 4 devices a round at the frequencies they offer can keep
the budget, so an "energy / budget" above 1 is not the fault of a single policy. [The catalogue](policies.md) says what
each rule knows and ignores.

`balanced` and `ocean` have a weight between energy and learning (price, V) that decides what they spend. They are
entered with their defaults, and once more with a weight set by one rule for both: to spend as much as `lyapunov` does
with the paper's V, or as close as possible, found on seeds 1000 and 1001 without learning. Those entries, named with
the weight, compare accuracy at equal energy. What `lyapunov_joint` spends hardly depends on its V.

Where accuracy is not tested in every round, rounds and energy to an accuracy are those of the first test that reaches
it, which may be late by up to one interval between tests.
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
    found: dict[tuple[str, str], tuple[Plan, pl.DataFrame]] = {
        board: (results.plan, summarise(results)) for board, results in boards.items()
    }
    parts = [
        "# Leaderboard\n",
        protocols.opening(found),
        f"{_made_of(boards)}\n",
        SERVER,
        *_protocols(found, hindsight or {}),
        "## The most accurate at any cost\n",
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


def _protocols(found: protocols.Summaries, hindsight: Mapping[str, Results]) -> list[str]:
    """What is asked first, by its name."""
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
    """The first thing to know about a board."""
    runs = per_run(results)
    said = discussion(results.plan, runs, summarise(results, runs))
    return f"- **{name}, eligible: {reading}.** {said[0] if said else 'Nothing to rank.'}"


def _section(name: str, reading: str, results: Results, changes: Sequence[str], pictures: Path) -> str:
    runs = per_run(results)
    summary = summarise(results, runs)
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
