"""Everything that is made from results: figures, curves, claims, report.html, and the page for the docs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from feelstream import experiment
from feelstream.errors import RunError
from feelstream.experiment import Arm, Plan, Results, comparison
from feelstream.experiment import paper as reproduce
from feelstream.experiment.claims import EXPLAINED, Finding, judged
from feelstream.report.board.table import save_pareto
from feelstream.report.drawing import figures
from feelstream.report.drawing.curves import save_curves
from feelstream.report.html.groups import groups
from feelstream.report.html.page import page
from feelstream.report.paper import curves as curve_tables
from feelstream.report.paper.docs import write_docs
from feelstream.run import read
from feelstream.run.files import write_atomically, write_json


@dataclass(frozen=True)
class Written:
    """What `write` left behind."""

    report: Path
    figures: list[Path]
    findings: list[Finding]


def results_in(directory: str | Path) -> Results:
    """The results in a directory: of `reproduce` or `compare`, or a single run's."""
    path = Path(directory)
    if (path / "plan.json").is_file():
        return experiment.load(path)
    if (path / "run.json").is_file():
        run = read(path)
        label = run.scenario.policy.plugin_name()
        plan = Plan(f"{path.resolve().name}, seed {run.seed}", (Arm(label, run.scenario),), (run.seed,))
        return Results(plan, {(label, run.seed): path}, [])
    raise RunError(f"{path} holds neither results (plan.json) nor a run (run.json)")


def write(results: Results, out: str | Path, docs: Path | None = None, summary: pl.DataFrame | None = None) -> Written:
    """Write report.html and, for a plan of the paper's figures, figures/, curves.csv and .parquet and claims.json.

    Results of anything else get a leaderboard, figures of accuracy and energy by round and against what was varied, and
    figures/pareto where they have accuracies to compare; summary: `comparison.summarise(results)`, if it is at hand.
    """
    if not results.finished:
        raise RunError(f"there is nothing to report: no run of '{results.plan.name}' has finished")
    out = Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise RunError(f"cannot use the directory {out}: {problem.strerror}") from problem
    rounds, shown = results.rounds(), reproduce.figures_of(results.plan)
    findings = judged(results.plan, rounds) if shown else []
    drawn: list[Path] = []
    if shown:
        table = curve_tables.curves(shown, rounds)
        curve_tables.save(table, out)
        drawn = figures.save_all(shown, table, out / "figures")
        write_json(out / "claims.json", _claims_file(results, findings))
        if docs is not None:
            write_docs(docs, results, table, findings)
    elif docs is not None:
        raise RunError("the docs page is about the paper's figures, and these results are of something else")
    else:
        summary = comparison.summarise(results) if summary is None else summary
        drawn = save_pareto(results.plan, summary, out / "figures")
        drawn += save_curves(results.plan, groups(results.plan), rounds, summary, out / "figures")
    text = page(results, rounds, findings, None if shown else summary)
    report = out / "report.html"
    write_atomically(report, lambda file: file.write_text(text, encoding="utf-8"))
    return Written(report, drawn, findings)


def _claims_file(results: Results, findings: list[Finding]) -> dict[str, object]:
    return {
        "plan": results.plan.name,
        "seeds": list(results.plan.seeds),
        "changed_from_the_paper_presets": reproduce.changes(results.plan),
        "interval": "two-sided 95 % t interval over seeds of a per-seed number",
        "one_run": "95 % prediction interval of one run; a published number is reproduced if it lies inside",
        "p": "two-sided paired t-test; p_holm: after Holm's correction over all claims; p_sign_flip: permutation test",
        "early_late_end": "first third, last third and last tenth of the rounds",
        "verdicts": {str(verdict): words for verdict, words in EXPLAINED.items()},
        "claims": [finding.as_dict() for finding in findings],
    }
