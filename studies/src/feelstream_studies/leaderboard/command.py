"""The command that makes the leaderboard of all policies on several scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from feelstream.studies.commands import (
    DaskOption,
    JsonOption,
    SeedsOption,
    SetOption,
    WorkersOption,
    err,
    out,
    play,
    policy_option,
    print_json,
    report_comparison,
    tell_failures,
    typed,
)
from feelstream.studies.plans import Plan, ScenarioError, arms
from feelstream.studies.results import Results
from feelstream_studies.leaderboard import STUDY
from feelstream_studies.leaderboard.entries import BOARD, ELIGIBLE, entries
from feelstream_studies.leaderboard.protocols import hindsight_plan

app = typer.Typer()


@app.command(name="leaderboard")
def leaderboard_command(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SCENARIO]…", help=f"Presets or TOML files; default: {', '.join(BOARD)}."),
    ] = None,
    policies: Annotated[list[str] | None, policy_option("all, with variants")] = None,
    seeds: SeedsOption = 20,
    eligible: Annotated[
        str, typer.Option("--eligible", help="Who may be scheduled: any device (the paper), with_data, or both.")
    ] = "both",
    overrides: SetOption = None,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    directory: Annotated[Path, typer.Option("--out", help="Directory of the results.")] = Path("results/leaderboard"),
    docs: Annotated[
        Path | None, typer.Option("--docs", metavar="DIR", help="Also write leaderboard.md and its plots there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare all policies on several scenarios; stored runs are not repeated."""
    if eligible not in ("both", *ELIGIBLE):
        raise ScenarioError(f"--eligible: must be any, with_data or both, not {eligible!r}")
    readings = ELIGIBLE if eligible == "both" else (eligible,)
    names = scenarios or list(BOARD)
    stems = [Path(name).stem for name in names]
    if len(set(stems)) < len(stems):
        raise ScenarioError(f"two scenarios have one name, and so one directory for their results: {', '.join(names)}")
    changes = {
        (name, reading): [*BOARD.get(name, ()), f"data.eligible={reading}", *(overrides or ())]
        for name in names
        for reading in readings
    }
    plans: dict[tuple[str, str], Plan] = {}
    best: dict[str, Plan] = {}
    with err.status("setting the weights"):
        for (name, reading), changed in changes.items():
            entered = policies or entries(name, changed)
            compared = arms(name, entered, changed)
            plan = Plan(f"compare {Path(name).stem} {reading}", compared, tuple(range(seeds)), study=STUDY.name)
            plans[name, reading] = plan
            if docs is not None and not policies and name not in best:
                best[name] = hindsight_plan(plan, name, changed, entered)
    # Checked before the first is run: a slip in the last should not cost the time of the others.
    boards: dict[tuple[str, str], Results] = {}
    found: list[dict[str, Any]] = []
    for (name, reading), plan in plans.items():
        where = directory / f"{Path(name).stem}-{reading}"
        if not as_json:
            out.print(f"{name}, data.eligible = {reading}\n", style="bold")
        boards[name, reading] = play(plan, where, workers, dask)
        board = report_comparison(boards[name, reading], where, quiet=as_json, everything=True)
        found.append({"scenario": name, "eligible": reading, **board})
        if not as_json:
            out.print()
    page: Path | None = None
    if docs is not None:
        hindsight = {
            name: play(plan, directory / f"{Path(name).stem}-hindsight", workers, dask) for name, plan in best.items()
        }
        from feelstream_studies.leaderboard.page import write_leaderboard

        with err.status("writing the docs page"):
            words = _options(scenarios, policies, seeds, eligible, overrides)
            page = write_leaderboard(docs, boards, changes, words, hindsight)
    if as_json:
        print_json({"boards": found, "docs": page})
    elif page is not None:
        out.print(str(page), soft_wrap=True)
    for results in boards.values():
        tell_failures(results)


def _options(
    scenarios: list[str] | None, policies: list[str] | None, seeds: int, eligible: str, overrides: list[str] | None
) -> list[str]:
    """The words that make the same page again."""
    words = [
        *(scenarios or ()),
        *typed("--seeds", [seeds]),
        *typed("--eligible", [eligible] if eligible != "both" else ()),
    ]
    return [*words, *typed("--policy", policies), *typed("--set", overrides), "--docs", "docs"]
