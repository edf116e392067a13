"""The finding in three sentences, from the evidence: what reproduces, why, and what remains.

The first sentence counts verdicts. The second tells how many of random's slots are empty and what becomes of the lead
in accuracy when no device without data may be scheduled; the third, what is left then. A sentence whose runs are
missing is omitted, so the text never says more than the results do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from feelstream.studies.claims import Finding, Published, Verdict, judged
from feelstream.studies.pages import markdown
from feelstream.studies.results import LEAST_SEEDS, Results
from feelstream_studies.hu2023 import paper
from feelstream_studies.hu2023.claims import remaining_claims

MOSTLY = 0.5  # share of the lead that must vanish for "mostly"


def conclusion(results: Results, findings: Sequence[Finding]) -> str:
    """Up to three sentences, as one paragraph."""
    left = judged(results.plan, results.rounds(), remaining_claims())
    said = markdown(
        "feelstream_studies.hu2023/conclusion.md.j2",
        claims=_counted([finding for finding in findings if not finding.claim.fitted]),
        saved=_savings(findings),
        slots=_slots(results, _leads(findings), _leads(left)),
        left=_remaining(left),
        least=LEAST_SEEDS,
        mostly=MOSTLY,
    )
    return " ".join(said.splitlines())


def _counted(own: Sequence[Finding]) -> dict[str, Any]:
    """How many claims there are, and in which panels those are that reproduce or do not."""

    def panels(*verdicts: Verdict) -> Counter[str]:
        return Counter(sorted(finding.claim.panel for finding in own if finding.verdict in verdicts))

    return {
        "all": len(own),
        "few": all(finding.verdict is Verdict.TOO_FEW for finding in own),
        "held": panels(Verdict.REPRODUCED),
        "failed": panels(Verdict.FAILED, Verdict.DIRECTION),
    }


def _slots(results: Results, before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """The shares of slots that go to empty devices, and the mean lead with and without them."""
    random, own = (mean_empty(results, arm) for arm in (paper.random, paper.proposed))
    shared = [key for key in before if key in after]
    if random is None or own is None or not shared:
        return {}
    whole, rest = (sum(leads[key] for key in shared) / len(shared) for leads in (before, after))
    gone = 1 - rest / whole if whole else 0.0
    return {"random": random, "proposed": own, "comparisons": len(shared), "whole": whole, "rest": rest, "gone": gone}


def _remaining(left: Sequence[Finding]) -> dict[str, Any]:
    saved = [finding for finding in left if isinstance(finding.claim.test, Published)]
    leads = [finding.verdict for finding in left if not isinstance(finding.claim.test, Published)]
    return {
        "saved": _savings(left),
        "certain": all(finding.ours.low is not None and finding.ours.low > 0 for finding in saved),
        "judged": any(verdict is not Verdict.TOO_FEW for verdict in leads),
        "ahead": leads.count(Verdict.REPRODUCED),
        "behind": leads.count(Verdict.FAILED),
        "tests": len(leads),
    }


def _savings(findings: Sequence[Finding]) -> dict[int, float]:
    """Mean over the partitions, by devices a round, %."""
    found = {}
    for n in paper.SIZES:
        means = [f.ours.mean for f in findings if isinstance(f.claim.test, Published) and f"-n{n}-" in f.claim.key]
        if means:
            found[n] = sum(means) / len(means)
    return found


def _leads(findings: Sequence[Finding]) -> dict[str, float]:
    """Leads in accuracy over the whole run of figure 1, by claim, pp."""
    return {
        f.claim.key: f.ours.mean for f in findings if f.claim.panel in ("1a", "1b") and f.claim.key.endswith("-mean")
    }


def mean_empty(results: Results, arm: Callable[[str, int], str]) -> float | None:
    """The mean of `empty_share` over all runs of figure 1 whose device tables were kept."""
    labels = [arm(setting, n) for setting in ("iid", "3digit") for n in paper.SIZES]
    tables = [results.devices(label, seed, ("stored", "scheduled")) for label, seed in _by_arm(results, labels)]
    shares = [share for table in tables if table is not None and (share := empty_share(table)) is not None]
    return sum(shares) / len(shares) if shares else None


def _by_arm(results: Results, labels: Sequence[str]) -> list[tuple[str, int]]:
    return [run for label in labels for run in results.finished if run[0] == label]


def empty_share(devices: pl.DataFrame) -> float | None:
    """Σ_t |{k ∈ Π*(t) : S_k(t) = ∅}| / Σ_t |Π*(t)| from a run's device table; None where nobody was scheduled."""
    slots = devices.filter("scheduled")
    return float((slots["stored"] == 0).mean()) if len(slots) else None  # pyright: ignore[reportArgumentType]
