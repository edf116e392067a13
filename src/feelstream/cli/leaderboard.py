"""The command that makes the leaderboard of all policies on several scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from feelstream.cli.common import SetOption, err, out
from feelstream.cli.compare import policy_option, report_comparison
from feelstream.cli.playing import DaskOption, SeedsOption, WorkersOption, play, tell_failures
from feelstream.errors import ScenarioError
from feelstream.experiment import Plan, Results, comparison, leaderboard

app = typer.Typer()


@app.command(name="leaderboard")
def leaderboard_command(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SCENARIO]…", help=f"Presets or TOML files; default: {', '.join(leaderboard.BOARD)}."),
    ] = None,
    policies: Annotated[list[str] | None, policy_option("all")] = None,
    seeds: SeedsOption = 10,
    overrides: SetOption = None,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    directory: Annotated[Path, typer.Option("--out", help="Directory of the results.")] = Path("results/leaderboard"),
    docs: Annotated[
        Path | None, typer.Option("--docs", metavar="DIR", help="Also write leaderboard.md and its plots there.")
    ] = None,
) -> None:
    """Compare all policies on several scenarios; what was played before is not played again."""
    changes = {name: [*leaderboard.BOARD.get(name, ()), *(overrides or ())] for name in scenarios or leaderboard.BOARD}
    plans = {
        name: Plan(
            f"compare {Path(name).stem}", comparison.arms(name, policies or ["all"], changed), tuple(range(seeds))
        )
        for name, changed in changes.items()
    }
    stems = [Path(name).stem for name in plans]
    if len(set(stems)) < len(stems):
        raise ScenarioError(f"two scenarios have one name, and so one directory for their results: {', '.join(plans)}")
    # Checked before the first is played: a slip in the last should not cost the time of the others.
    boards: dict[str, Results] = {}
    for name, plan in plans.items():
        where = directory / Path(name).stem
        out.print(f"{name}\n", style="bold", markup=False, highlight=False)
        boards[name] = play(plan, where, workers, dask)
        report_comparison(boards[name], where)
        out.print()
    if docs is not None:
        from feelstream.report.board.docs import write_leaderboard

        with err.status("writing the docs page"):
            page = write_leaderboard(docs, boards, changes, _options(scenarios, policies, seeds, overrides))
        out.print(str(page), markup=False, highlight=False, soft_wrap=True)
    for results in boards.values():
        tell_failures(results)


def _options(
    scenarios: list[str] | None, policies: list[str] | None, seeds: int, overrides: list[str] | None
) -> list[str]:
    """The words that make the same page again."""
    words = [*(scenarios or ()), "--seeds", str(seeds)]
    for option, values in (("--policy", policies), ("--set", overrides)):
        words += [word for value in values or () for word in (option, value)]
    return [*words, "--docs", "docs"]
