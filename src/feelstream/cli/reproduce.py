"""Commands that make the paper's figures again, and the report of any results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from feelstream.cli.common import JsonOption, SetOption, err, next_command, out, print_json
from feelstream.cli.playing import DaskOption, WorkersOption, failures, play, tell_failures
from feelstream.experiment import Results, paper

if TYPE_CHECKING:
    from feelstream.experiment.claims import Finding

app = typer.Typer()

_COLOURS = {"reproduced": "green", "direction only": "cyan", "not reproduced": "red"}
DocsOption = Annotated[
    Path | None, typer.Option("--docs", metavar="DIR", help="Also write reproduction.md and its figures there.")
]


@app.command()
def reproduce(
    figure: Annotated[
        str,
        typer.Argument(
            metavar="fig1|fig2|fig3|fig1-with-data|all",
            help="Which figure to make: one of the paper's, figure 1 without empty devices, or all.",
        ),
    ],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds; intervals need two or more.")] = 10,
    directory: Annotated[Path, typer.Option("--out", help="Directory of the results.")] = Path("results"),
    workers: WorkersOption = None,
    dask: DaskOption = None,
    overrides: SetOption = None,
    docs: DocsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the paper's figures again: runs, panels, curves, claims and a report."""
    plan = paper.plan(figure, range(seeds), overrides or ())
    results = play(plan, directory, workers, dask)
    if not results.finished:
        tell_failures(results)
    _report(results, directory, docs, as_json)
    tell_failures(results)
    if not as_json:
        next_command("feelstream", "multiverse")


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="Results of reproduce or compare, or a run directory.")],
    docs: DocsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the report (and the paper's figures, where results are of them) again from stored results."""
    from feelstream.report import results_in

    results = results_in(directory)
    _report(results, directory, docs, as_json)


def _report(results: Results, directory: Path, docs: Path | None, as_json: bool = False) -> None:
    from feelstream.report import write
    from feelstream.report.paper.words import FITTED

    with err.status("drawing figures and report"):
        written = write(results, directory, docs)
    if as_json:
        claims = [finding.as_dict() for finding in written.findings]
        print_json({"claims": claims, "failures": failures(results), "report": str(written.report)})
        return
    if written.findings:
        out.print(claims_table(written.findings))
        out.print(
            f"ours: mean [95 % t interval] over {len(results.plan.seeds)} seeds, in pairs by seed; verdicts after "
            "Holm's correction over all claims; early, late: first, last third of the rounds; end: last tenth; "
            f"pp: percentage points; †: {FITTED}. Why a claim did not come out is in the report.",
            style="dim",
            highlight=False,
        )
    for name, path in (("figures", directory / "figures" if written.figures else None), ("docs", docs)):
        if path is not None:
            out.print(f"{name:8} {path}", markup=False, highlight=False, soft_wrap=True)
    out.print(f"report   {written.report}", markup=False, highlight=False, soft_wrap=True)


def claims_table(findings: Sequence[Finding]) -> Table:
    """The claims as the terminal shows them."""
    from feelstream.report.paper.words import ours

    table = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1))
    for heading in ("fig", "claim", "paper", "ours [95 %]", "verdict"):
        table.add_column(heading, ratio=1 if heading == "claim" else None, no_wrap=heading in ("fig", "verdict"))
    for finding in findings:
        claim, verdict = finding.claim, str(finding.verdict)
        colour = _COLOURS.get(verdict, "yellow")
        # Text objects, so that brackets are not read as markup.
        cells = (claim.panel, claim.statement, claim.paper, ours(finding))
        table.add_row(*(Text(cell) for cell in cells), Text(verdict + " †" * claim.fitted, style=colour))
    return table
