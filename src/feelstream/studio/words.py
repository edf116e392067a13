"""Why these devices? One sentence per policy and round, from the figures of the trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from feelstream.quantities import QUANTITIES
from feelstream.scenario import Scenario
from feelstream.studio.views import RoundView


def number(value: float) -> str:
    """Three significant digits, without an exponent where none is needed.

    >>> number(0.0512), number(1234.5), number(2)
    ('0.0512', '1230', '2')
    """
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    if 1e-4 <= abs(value) < 1e6:
        digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
        text = f"{float(f'{value:.3g}'):.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.2e}"


def shown_as(name: str, value: float) -> str:
    """A value of a column of the trace in the unit that readers expect.

    >>> shown_as("queue_j", 0.0123), shown_as("score", 0.5), shown_as("gain", float("nan"))
    ('12.3 mJ', '0.5', '–')
    """
    if not np.isfinite(value):
        return "–"
    quantity = QUANTITIES.get(name)
    return number(value) if quantity is None else f"{number(value * quantity.scale)} {quantity.unit}".rstrip()


def listed(names: Sequence[object], most: int = 6) -> str:
    """`1, 2 and 3`; of very many, the first few and how many more.

    >>> listed([3]), listed([3, 7, 9]), listed(range(9), 3)
    ('3', '3, 7 and 9', '0, 1, 2 and 6 more')
    """
    texts = [str(name) for name in names]
    if len(texts) > most:
        texts = [*texts[:most], f"{len(names) - most} more"]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def why(view: RoundView, scenario: Scenario) -> str:
    """The sentence under a policy; `scenario` is the one in force in the round."""
    row, devices = view.row, view.devices
    if not row["scheduled"]:
        few = "no device met the deadline" if not row["feasible"] else "no feasible device was worth its energy"
        if scenario.policy.plugin_name() == "myopic_energy":
            few = "no feasible device could pay for the round"
        return f"Nobody was scheduled: {few}."
    if devices is None:
        return f"{row['scheduled']} of {row['feasible']} feasible devices were scheduled; this run stores no devices."
    chosen = view.chosen
    who = _who(devices["device"][chosen])
    rule = _RULES.get(scenario.policy.plugin_name(), _by_score_or_rule)
    sentence = f"{who} {rule(view, scenario, chosen)}"
    lost = row["scheduled"] - row["transmitted"]
    if lost:
        dropped = devices["device"][chosen[~devices["transmitted"][chosen]]]
        late = _who(dropped) if len(dropped) == lost else f"{lost} of them"
        sentence += f" {late} {'was' if lost == 1 else 'were'} dropped: with this round's channel too late."
    return sentence


def _who(ids: NDArray) -> str:
    return f"Device{'s' if len(ids) > 1 else ''} {listed(ids.tolist())}"


def _have(chosen: NDArray) -> str:
    return "has" if len(chosen) == 1 else "have"


def weight_of(scenario: Scenario) -> float | None:
    """V as a number; None where there is none, as for V = auto, or where a stored policy of a user's has another V."""
    weight = getattr(scenario.policy, "V", None)
    return float(weight) if isinstance(weight, int | float) else None


def _by_drift_and_penalty(view: RoundView, scenario: Scenario, chosen: np.ndarray) -> str:
    devices = view.devices
    assert devices is not None
    feasible, V = devices["feasible"], weight_of(scenario)
    score = float(np.nansum(devices["score"][chosen]))
    if V is not None and np.isinf(V):
        return f"{_have(chosen)} the most important data of {view.row['feasible']} feasible devices (V = inf)."
    lowest = "score" if len(chosen) == 1 else "scores"
    sentence = (
        f"{_have(chosen)} the lowest {lowest} Q·E − V·I of {view.row['feasible']} feasible devices "
        f"({number(score)} in all): "
    )
    importance, queue = devices["importance"], devices["queue_j"]
    of_chosen, of_all = float(np.nanmean(importance[chosen])), float(np.nanmean(importance[feasible]))
    waiting, usual = float(queue[chosen].mean()), float(queue[feasible].mean())
    reasons = [f"importance {_against('importance', of_chosen, of_all)}"]
    if usual > 0:
        reasons.append(f"queue {_against('queue_j', waiting, usual)}")
    main = _larger_part(devices, chosen)
    return sentence + " and ".join(reasons) + (f"; {main}" if main else "") + "."


def _against(name: str, value: float, mean: float) -> str:
    return f"{shown_as(name, value)} against {shown_as(name, mean)} on average"


def _larger_part(devices: dict[str, np.ndarray], chosen: np.ndarray) -> str:
    amount = float(np.nanmean(devices["amount"][chosen]))
    unlike = float(np.nanmean(devices["dissimilarity"][chosen]))
    if not amount + unlike > 0:
        return ""
    if amount > 1.5 * unlike:
        return "mostly because much fresh data is waiting"
    return "mostly because its labels are unlike those used so far" if unlike > 1.5 * amount else ""


def _at_random(view: RoundView, scenario: Scenario, chosen: np.ndarray) -> str:
    return f"{'was' if len(chosen) == 1 else 'were'} drawn at random from {view.row['feasible']} feasible devices."


def _by_score_or_rule(view: RoundView, scenario: Scenario, chosen: np.ndarray) -> str:
    devices = view.devices
    assert devices is not None
    rule = (type(scenario.policy).__doc__ or "").strip().splitlines()
    text = f"{'was' if len(chosen) == 1 else 'were'} chosen from {view.row['feasible']} feasible devices"
    scores = devices["score"][chosen]
    if np.isfinite(scores).any():
        text += f" by the lowest scores ({listed([number(float(score)) for score in scores], 4)})"
    return f"{text}. The rule: {rule[0].rstrip('.')}." if rule and rule[0] else f"{text}."


_RULES = {"lyapunov": _by_drift_and_penalty, "lyapunov_joint": _by_drift_and_penalty, "random": _at_random}
