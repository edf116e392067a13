"""The command that searches the readings of the paper and the settings that it does not state, in stages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from feelstream.experiment import Plan, Results
from feelstream.studies.hu2023.multiverse import energy, playing
from feelstream.terminal.common import JsonOption, err, out, print_json
from feelstream.terminal.numbers import number_option
from feelstream.terminal.playing import DaskOption, WorkersOption, play, tell_failures

CONFIRMATION = "confirmation.csv"
app = typer.Typer()


@app.command()
def multiverse(
    turns: Annotated[
        int | None,
        number_option(
            "--turns", low=0, help="Most turns of the race, each one seed of a specification; 0: only write."
        ),
    ] = None,
    tables: Annotated[Path, typer.Option("--tables", help="Directory of the tables; they grow as runs finish.")] = Path(
        "docs/results"
    ),
    directory: Annotated[Path, typer.Option("--out", help="Directory of the runs.")] = Path("results/multiverse"),
    workers: WorkersOption = None,
    dask: DaskOption = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="DIR", help="Also write multiverse.md, its figures and explorer.html."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Search readings of the paper for those under which its claims hold; runs in the tables are not repeated."""

    def played(plan: Plan) -> Results:
        results = play(plan, directory / plan.name, workers, dask)
        tell_failures(results)
        return results

    def say(sentence: str) -> None:
        (err if as_json else out).print(sentence, markup=False, highlight=False)

    if turns != 0:
        energy.play_all(tables / playing.ENERGY, played, say)
        playing.play_race(tables, played, say, turns)
    race, known = playing.read(tables), energy.Energy(energy.read(tables / playing.ENERGY))
    from feelstream.studies.hu2023.multiverse import explorer, page  # matplotlib takes a while to come

    found = page.Found(known, race)
    written = page.write(known, race, docs) if docs is not None else None
    if docs is not None:
        explorer.write(docs, tables / CONFIRMATION, known, race)
    if as_json:
        possible = {figure: [str(each) for each in own] for figure, own in found.possible.items()}
        kept = None if known.kept is None else [str(each) for each in known.kept]
        print_json(
            {"summary": page.summary(found), "kept": kept, "possible": possible, "docs": written and str(written)}
        )
        return
    say(page.summary(found))
    if written is not None:
        out.print(f"docs     {written}", markup=False, highlight=False, soft_wrap=True)
