"""The finding in three sentences, from the evidence: what reproduces, why, and what remains.

The first sentence counts verdicts. The second tells how many of random's slots are empty and what becomes of the lead
in accuracy when no device without data may be scheduled; the third, what is left then. A sentence whose runs are
missing is left out, so the text never says more than the results do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from feelstream.studies.claims import Finding, Published, Verdict, evidence, judged
from feelstream.studies.results import LEAST_SEEDS, Results, number
from feelstream_studies.hu2023 import paper as reproduce
from feelstream_studies.hu2023.claims import remaining_claims
from feelstream_studies.hu2023.claims.empty_slots import empty_slots

MOSTLY = 0.5  # share of the lead that must vanish for "mostly"


def conclusion(results: Results, findings: Sequence[Finding]) -> str:
    """Up to three sentences, as one paragraph."""
    left = judged(results.plan, results.rounds(), remaining_claims())
    return " ".join(part for part in (_first(findings), _second(results, findings, left), _third(left)) if part)


def _first(findings: Sequence[Finding]) -> str:
    own = evidence(findings)
    if not own:
        return ""
    if all(finding.verdict is Verdict.TOO_FEW for finding in own):
        return f"With fewer than {LEAST_SEEDS} seeds, none of the paper's {len(own)} claims is judged."
    held = [finding for finding in own if finding.verdict is Verdict.REPRODUCED]
    text = f"Of {len(own)} claims of the paper besides the fitted energy savings, {len(held)} reproduce"
    text += f" ({_panels(held)})" if held else ""
    failed = [finding for finding in own if finding.verdict in (Verdict.FAILED, Verdict.DIRECTION)]
    text += f", {len(failed)} do not" + (f" ({_panels(failed)})" if failed else "")
    undecided = len(own) - len(held) - len(failed)
    text += f" and {undecided} are inconclusive" if undecided else ""
    savings = _savings(findings)
    if savings:
        text += f"; the energy savings, to which T and σ were fitted, are {savings} against the paper's 16 % and 35 %"
    return text + "."


def _second(results: Results, findings: Sequence[Finding], left: Sequence[Finding]) -> str:
    random, own = (_mean_empty(results, arm) for arm in (reproduce.random, reproduce.proposed))
    before, after = _leads(findings), _leads(left)
    shared = [key for key in before if key in after]
    if random is None or own is None or not shared:
        return ""
    whole = sum(before[key] for key in shared) / len(shared)
    rest = sum(after[key] for key in shared) / len(shared)
    slots = (
        f"{number(100 * random, 0)} % of random's slots, and {number(100 * own, 0)} % of the proposed policy's, go to "
        "devices that hold nothing yet"
    )
    change = (
        f"averaged over the {len(shared)} comparisons of figure 1, the lead in accuracy over the run is "
        f"{number(whole, 1, True)} percentage points as the paper is written and {number(rest, 1, True)} when neither "
        "policy may schedule such devices"
    )
    if whole <= 0:
        return f"{slots}; {change}."
    gone = 1 - rest / whole
    verb = "is mostly" if gone > MOSTLY else "is partly" if gone > 0 else "is not"
    return f"The lead over random {verb} random's empty slots: {slots}, and {change}."


def _third(left: Sequence[Finding]) -> str:
    savings = _savings(left)
    if not savings:
        return ""
    saved = [finding for finding in left if isinstance(finding.claim.test, Published)]
    leads = [finding for finding in left if not isinstance(finding.claim.test, Published)]
    ahead = [finding for finding in leads if finding.verdict is Verdict.REPRODUCED]
    behind = [finding for finding in leads if finding.verdict is Verdict.FAILED]
    if any(finding.ours.low is None or finding.ours.low <= 0 for finding in saved):
        text = f"What remains then is no certain saving of energy, {savings}"
    else:
        text = f"What remains then is the saving of energy, {savings}"
    if any(finding.verdict is not Verdict.TOO_FEW for finding in leads):
        sides = f"ahead in {len(ahead)} and behind in {len(behind)} of {len(leads)} tests"
        text += f"; in accuracy the proposed policy is {sides}"
    return text + "."


def _panels(findings: Sequence[Finding]) -> str:
    """1a, 2b twice"""
    counts = Counter(finding.claim.panel for finding in findings)
    return ", ".join(panel + ("" if count == 1 else f" ×{count}") for panel, count in sorted(counts.items()))


def _savings(findings: Sequence[Finding]) -> str:
    """Mean over the partitions, by devices a round: "17 % (n = 2) and 33 % (n = 4)"."""
    parts = []
    for n in reproduce.SIZES:
        means = [f.ours.mean for f in findings if isinstance(f.claim.test, Published) and f"-n{n}-" in f.claim.key]
        if means:
            parts.append(f"{number(sum(means) / len(means), 0)} % (n = {n})")
    return " and ".join(parts)


def _leads(findings: Sequence[Finding]) -> dict[str, float]:
    """Leads in accuracy over the whole run of figure 1, by claim, pp."""
    return {
        f.claim.key: f.ours.mean for f in findings if f.claim.panel in ("1a", "1b") and f.claim.key.endswith("-mean")
    }


def _mean_empty(results: Results, arm: Callable[[str, int], str]) -> float | None:
    known = {each.label for each in results.plan.arms}
    shares: list[float] = []
    for setting in ("iid", "3digit"):
        for n in reproduce.SIZES:
            label = arm(setting, n)
            if label in known:
                shares += empty_slots(results, label).values()
    return sum(shares) / len(shares) if shares else None
