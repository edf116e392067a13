"""The command that judges the paper's claims under other readings and unstated settings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from feelstream.experiment import Plan, Results
from feelstream.studies.hu2023.multiverse.settings import chosen
from feelstream.studies.hu2023.multiverse.study import Sizes, study
from feelstream.terminal.common import JsonOption, SetOption, err, out, print_json
from feelstream.terminal.playing import DaskOption, WorkersOption, failures, play, tell_failures

app = typer.Typer()


@app.command()
def multiverse(
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="Seeds of every schedule.")] = 5,
    learning: Annotated[
        int, typer.Option("--learning", min=0, help="Specifications with learning, spread out; 0: energy alone.")
    ] = 24,
    search: Annotated[
        int, typer.Option("--search", min=0, help="More of them, where the search for one that fits all leads.")
    ] = 12,
    learning_seeds: Annotated[int, typer.Option("--learning-seeds", min=2, help="Seeds of each of them.")] = 3,
    levels: Annotated[
        list[str] | None,
        typer.Option("--levels", metavar="NAME=VALUE,VALUE,…", help="Other values of a setting; repeatable."),
    ] = None,
    overrides: SetOption = None,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    directory: Annotated[Path, typer.Option("--out", help="Directory of the results.")] = Path("results/multiverse"),
    docs: Annotated[
        Path | None, typer.Option("--docs", metavar="DIR", help="Also write multiverse.md and its figures there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge the claims of the paper under other readings and settings of it; runs that are stored are not run again."""
    last: dict[str, Results] = {}

    def played(plan: Plan) -> Results:
        last[plan.name] = play(plan, directory / plan.name, workers, dask, runs=directory / "runs")
        if not last[plan.name].finished:
            tell_failures(last[plan.name])
        return last[plan.name]

    def tell(sentence: str) -> None:
        (err if as_json else out).print(sentence, markup=False, highlight=False)

    sizes = Sizes(seeds, learning, search, learning_seeds)
    found = study(chosen(levels or ()), sizes, played, overrides or (), tell)
    from feelstream.studies.hu2023.multiverse import writing  # matplotlib takes a while to come

    with err.status("drawing the curves"):
        writing.write(found, directory)
        if docs is not None:
            writing.write_docs(found, docs, shlex.join(_words(sizes, levels, overrides)))
    written = {"figures": directory / "figures", "docs": docs and docs / "multiverse.md"}
    written["outcomes"] = directory / "outcomes.csv"
    if as_json:
        printed = {"summary": writing.summary(found), "claims": writing.at_a_glance(found)}
        print_json({**printed, "failures": failures(*last.values()), **written})
    else:
        out.print(f"\n{writing.summary(found)}\n", markup=False, highlight=False)
        for name, path in written.items():
            if path is not None:
                out.print(f"{name:8} {path}", markup=False, highlight=False, soft_wrap=True)
    for results in last.values():
        tell_failures(results)


def _words(sizes: Sizes, levels: list[str] | None, overrides: list[str] | None) -> list[str]:
    """The command that makes the same page again."""
    words = ["feelstream", "multiverse", "--seeds", str(sizes.seeds), "--learning", str(sizes.learning)]
    words += ["--search", str(sizes.search), "--learning-seeds", str(sizes.learning_seeds)]
    for option, values in (("--levels", levels), ("--set", overrides)):
        words += [word for value in values or () for word in (option, value)]
    return [*words, "--docs", "docs"]
