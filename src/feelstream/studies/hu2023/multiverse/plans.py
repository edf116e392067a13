"""Specifications as arms of ordinary plans.

An arm of the paper under a specification is labelled by the choices that can change it, so that specifications that
differ only in what a policy never looks at share its runs: random is played once for all readings of importance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from feelstream.experiment.plan import Arm, Plan
from feelstream.studies.claims import Claim
from feelstream.studies.hu2023 import STUDY
from feelstream.studies.hu2023 import paper as reproduce
from feelstream.studies.hu2023.multiverse.settings import Factor, Specification

TESTS = 12  # of the accuracy in a run, about: a test takes as long as several rounds of training


def arm_label(label: str, specification: Specification, settings: Mapping[str, Factor]) -> str:
    """Label of the plan's arm that plays an arm of the paper under a specification."""
    return f"{label} | {specification.read_by(label, settings)}"


def arms_of(claims: Iterable[Claim], specification: Specification, settings: Mapping[str, Factor]) -> dict[str, str]:
    """Arm of the paper → arm of the plan, for all arms that the claims need."""
    labels = dict.fromkeys(label for claim in claims for label in claim.arms)
    return {label: arm_label(label, specification, settings) for label in labels}


def plan(
    name: str,
    specifications: Sequence[Specification],
    claims: Sequence[Claim],
    seeds: Iterable[int],
    settings: Mapping[str, Factor],
    overrides: Sequence[str] = (),
) -> Plan:
    """Every run that the claims need under the specifications, each once; without learning where they set none.

    overrides: `section.field=value` for all arms, such as another data set.
    """
    arms: dict[str, Arm] = {}
    for specification in specifications:
        for label, own in arms_of(claims, specification, settings).items():
            if own not in arms:
                read = specification.read_by(label, settings)
                arms[own] = Arm(
                    own, reproduce.scenario(label, (*_frame(specification), *overrides, *read.overrides(settings)))
                )
    return Plan(name, tuple(arms.values()), tuple(seeds), study=STUDY.name)


def _frame(specification: Specification) -> tuple[str, ...]:
    choices = dict(specification.choices)
    if "steps" not in choices:
        return ("trace.level=rounds", "learning.engine=none")
    return ("trace.level=rounds", f"learning.eval_every={max(1, int(choices['T']) // TESTS)}")
