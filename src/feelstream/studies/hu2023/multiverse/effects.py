"""What a claim comes to under a specification, seed by seed, and whether it is impossible by now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

from feelstream.experiment.significance import pooled_spread
from feelstream.experiment.statistics import t_quantile
from feelstream.studies.claims import Claim, Measured
from feelstream.studies.claims.resampling import Resampled
from feelstream.studies.claims.verdicts import margin_of
from feelstream.studies.hu2023.multiverse.settings import Specification

Key = tuple[str, str]  # claim, rival
Leads = dict[Key, dict[int, float]]  # of each, by seed


def leads_of(claims: Sequence[Claim], measured: Measured) -> Leads:
    """Each lead of each claim by seed; a number of averaged curves by its jackknife pseudo-values."""
    found: Leads = {}
    for claim in claims:
        for rival, evidence in (claim.effects(measured) or {}).items():
            found[claim.key, rival] = evidence.per_seed if isinstance(evidence, Resampled) else evidence
    return found


def impossible(
    known: Mapping[Specification, Leads], claims: Sequence[Claim], level: float
) -> dict[Specification, list[str]]:
    """For each specification, the claims with a lead whose upper limit is below 0, or below minus the margin.

    How much seeds differ is pooled over the specifications: three seeds of one alone would hardly know it.
    """
    margins = {claim.key: margin_of(claim.test) for claim in claims}
    found: dict[Specification, list[str]] = {each: [] for each in known}
    for key in next(iter(known.values()), {}):
        spread = pooled_spread([*leads[key].values()] for leads in known.values())
        if spread is None:
            continue
        for each, leads in known.items():
            values = np.array([*leads[key].values()])
            half = float(t_quantile(spread.freedom + 1, level)) * spread.s / sqrt(len(values))
            if values.mean() + half < -margins[key[0]] and key[0] not in found[each]:
                found[each].append(key[0])
    return found
