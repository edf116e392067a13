"""A study of one's own paper: two policies, one figure, two claims, a page.

feelstream study examples/own-study/own_study.py:STUDY --seeds 5
"""

from __future__ import annotations

from collections.abc import Sequence

from feelstream.studies import Study
from feelstream.studies.claims import Ahead, Claim, Published, lead, share_saved
from feelstream.studies.pages import Page, Section
from feelstream.studies.plans import Plan, arms
from feelstream.studies.results import Curve, Panel, PanelFigure, Results

POLICIES = ("lyapunov", "random")


def plan(seeds: Sequence[int], overrides: Sequence[str]) -> Plan:
    """Every run that the study needs."""
    return Plan("own study", arms("tiny", POLICIES, overrides), tuple(seeds))


CURVES = tuple(Curve(arm=policy, name=policy) for policy in POLICIES)
FIGURE = PanelFigure(
    "fig1",
    "Figure 1",
    "Test accuracy and time-averaged energy by round.",
    (Panel("1a", "synthetic data", "accuracy", CURVES), Panel("1b", "synthetic data", "energy_mean_cum_j", CURVES)),
)
CLAIMS = (
    Claim(
        key="accuracy", panel="1a", statement="lyapunov is more accurate than random over the whole run",
        paper="ahead", measure="accuracy, lyapunov − random, mean over the rounds", unit="pp", test=Ahead(),
        arms=POLICIES, effects=lead("lyapunov", {"random": "random"}, "accuracy", "mean"),
    ),
    Claim(
        key="saving", panel="1b", statement="lyapunov saves energy against random",
        paper="20 %", measure="1 − lyapunov / random, energy per device over the whole run", unit="%",
        test=Published(20.0, "%"), arms=POLICIES, effects=share_saved("lyapunov", {"random": "random"}),
    ),
)  # fmt: skip


def page(results: Results) -> Page:
    """What the report shows beside the comparison that every report has."""
    question = Section("question", "The question", "<p>What does it bring to weigh data against energy?</p>")
    return Page(
        title="A paper of our own",
        reference="A. Author, “A paper of our own”, 2026",
        figures=(FIGURE,),
        claims=CLAIMS,
        sections=[question],
    )


STUDY = Study("own-study", "A paper of our own", plan=plan, page=page)
