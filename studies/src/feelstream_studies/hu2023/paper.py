"""The paper's figures as plans: which runs each panel needs, and how its curves are named.

| figure | data                              | policies                         | n    | V    | shown              |
|--------|-----------------------------------|----------------------------------|------|------|--------------------|
| 1a 1b  | i.i.d. / 3-digit                  | proposed, random                 | 2, 4 | 0.05 | accuracy           |
| 1c 1d  | the same runs                     | the same                         | 2, 4 | 0.05 | time-averaged energy |
| 2a 2b  | i.i.d. / 2-digit                  | combined, amount, dissimilarity  | 2    | ∞    | accuracy           |
| 3a 3b  | minority, truncated normal / uniform | the same three                | 2    | ∞    | test loss          |

Beside them stands figure 1 once more, with only devices eligible that hold data (`fig1-with-data`): in the paper
holding data is no condition, and much of random's handicap is that it schedules devices that hold nothing yet. And
once more at three widths of arrivals (`fig1-widths`), for what the abstract says of temporal correlation.

Reference: C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming Data",
ICASSP 2023, arXiv:2305.01238.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import inf

from feelstream.studies.plans import (
    AnyOverride,
    Arm,
    Override,
    Plan,
    Scenario,
    ScenarioError,
    as_text,
    did_you_mean,
    flat,
    parsed,
    placed,
    preset,
)
from feelstream.studies.results import Curve, Panel, PanelFigure
from feelstream_studies.hu2023 import STUDY

PLAN_PREFIX = "reproduce-"
WITH_DATA = "data.eligible=with_data"
WIDTH = "data.arrivals.sigma"

# What makes a panel what it is; changing it would leave a figure under a wrong name.
FIXED = ("policy.name", "policy.size", "policy.metric", "data.partition", "data.arrivals.kind")

# What the paper leaves open, read literally: its own definition of fresh data, the width in its labels, the training of
# the classic example with its number of parameters; only T is fitted, to the energy savings. The presets `literal-*`.
LITERAL = (
    "system.rounds=25",
    "data.fresh=per_round",
    "data.arrivals.sigma=0.125",
    "learning.local.steps=24",
    "learning.local.batch=64",
    "learning.local.lr=0.01",
    "learning.local.momentum=0.5",
)


def proposed(setting: str, n: int) -> str:
    """Label of the arm that runs the paper's policy with n devices a round."""
    return f"{setting} proposed n={n}"


def random(setting: str, n: int) -> str:
    """Label of the arm that picks n devices at random."""
    return f"{setting} random n={n}"


def metric(setting: str, name: str) -> str:
    """Label of the arm that schedules by one importance metric alone, blind to energy."""
    return f"{setting} {name}"


def with_data(label: str) -> str:
    """Label of the same arm where only devices that hold data are eligible."""
    return f"{label} with data"


def at_width(label: str, width: float) -> str:
    """Label of the same arm where arrivals have this width σ, as a share of the run."""
    return f"{label} sigma={width:g}"


SIZES = (2, 4)
WIDTHS = (0.03125, 0.125, 0.5)  # σ, from strong to weak concentration in time: steps of four
METRICS = ("combined", "amount", "dissimilarity")

_ENERGY_AWARE = {"iid": "paper-iid", "3digit": "paper-3digit"}
_ENERGY_BLIND = {
    "iid": "paper-iid",
    "2digit": "paper-2digit",
    "minority": "paper-minority",
    "minority-uniform": "paper-minority-uniform",
}
IN_WORDS = {
    "iid": "i.i.d.",
    "3digit": "3 digits per device",
    "2digit": "2 digits per device",
    "minority": "minority digits, truncated-normal arrivals",
    "minority-uniform": "minority digits, uniform arrivals",
}


@cache
def _recipes() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Arm label → preset and overrides."""
    arms: dict[str, tuple[str, tuple[str, ...]]] = {}
    for setting, name in _ENERGY_AWARE.items():
        for n in SIZES:
            for label, policy in ((proposed(setting, n), "lyapunov"), (random(setting, n), "random")):
                own = (f"policy.name={policy}", f"policy.size={n}")
                arms[label] = (name, own)
                arms[with_data(label)] = (name, (*own, WITH_DATA))
                for width in WIDTHS if n == SIZES[0] else ():
                    arms[at_width(label, width)] = (name, (*own, f"{WIDTH}={width}"))
    for setting, name in _ENERGY_BLIND.items():
        for importance in METRICS:
            arms[metric(setting, importance)] = (name, ("policy.V=inf", f"policy.metric={importance}"))
    return arms


def _against_random(setting: str, arm: Callable[[str], str] = str) -> tuple[Curve, ...]:
    return tuple(
        curve
        for n in SIZES
        for curve in (
            Curve(arm(proposed(setting, n)), f"proposed, n = {n}"),
            Curve(arm(random(setting, n)), f"random, n = {n}"),
        )
    )


def _figure_1(which: str = "", arm: Callable[[str], str] = str) -> tuple[Panel, ...]:
    shown = [(setting, quantity) for quantity in ("accuracy", "energy_mean_cum_j") for setting in ("iid", "3digit")]
    return tuple(
        Panel(f"1{letter}{which}", IN_WORDS[setting], quantity, _against_random(setting, arm))
        for letter, (setting, quantity) in zip("abcd", shown, strict=True)
    )


def _by_width(setting: str) -> tuple[Curve, ...]:
    return tuple(
        Curve(at_width(arm(setting, SIZES[0]), width), f"{name}, σ = T/{1 / width:g}")
        for width in WIDTHS
        for name, arm in (("proposed", proposed), ("random", random))
    )


def _metrics(setting: str) -> tuple[Curve, ...]:
    return tuple(Curve(metric(setting, name), name) for name in METRICS)


FIGURES: dict[str, PanelFigure] = {
    figure.key: figure
    for figure in (
        PanelFigure(
            "fig1",
            "Figure 1",
            "Proposed and random scheduling, n devices a round, V = 0.05: test accuracy and time-averaged energy.",
            _figure_1(),
        ),
        PanelFigure(
            "fig2",
            "Figure 2",
            "Importance metrics, two devices a round, blind to energy (V = ∞): test accuracy.",
            (
                Panel("2a", IN_WORDS["iid"], "accuracy", _metrics("iid")),
                Panel("2b", IN_WORDS["2digit"], "accuracy", _metrics("2digit")),
            ),
        ),
        PanelFigure(
            "fig3",
            "Figure 3",
            "Importance metrics where a fifth of the devices hold digits 8 and 9, V = ∞: test loss.",
            (
                Panel("3a", IN_WORDS["minority"], "loss", _metrics("minority")),
                Panel("3b", IN_WORDS["minority-uniform"], "loss", _metrics("minority-uniform")),
            ),
        ),
        PanelFigure(
            "fig1-with-data",
            "Figure 1, only devices with data",
            "As figure 1, but neither policy may schedule a device that holds no data yet.",
            _figure_1("-with-data", with_data),
        ),
        PanelFigure(
            "fig1-widths",
            "Figure 1 by width of arrivals",
            "Two devices a round, V = 0.05, where the arrivals of a device are concentrated in time (σ = T/32), less, "
            "and hardly (σ = T/2): test accuracy.",
            (
                Panel("1a-widths", IN_WORDS["iid"], "accuracy", _by_width("iid")),
                Panel("1b-widths", IN_WORDS["3digit"], "accuracy", _by_width("3digit")),
            ),
        ),
    )
}


def chosen(name: str) -> tuple[PanelFigure, ...]:
    """The figures that `fig1`, `fig2`, `fig3`, `fig1-with-data`, `fig1-widths` or `all` stands for."""
    if name == "all":
        return tuple(FIGURES.values())
    if name not in FIGURES:
        known = [*FIGURES, "all"]
        raise ScenarioError(f"there is no figure '{name}'; {did_you_mean(name, known)}allowed: {', '.join(known)}")
    return (FIGURES[name],)


def plan(name: str, seeds: Iterable[int], overrides: Sequence[str] = (), specification: Sequence[str] = ()) -> Plan:
    """Every run that the figures need, each once however many panels show it.

    Args:
        name: `fig1`, `fig2`, `fig3`, `fig1-with-data`, `fig1-widths` or `all`.
        seeds: seeds of each arm; arms share their worlds.
        overrides: `section.field=value` for all arms. A policy's field is set on the arms whose policy has it.
        specification: more of them, set before where they fit, such as those of the literal presets.
    """
    changes = placed(overrides, Scenario().tables())
    _check_allowed(changes)
    wanted = dict.fromkeys(curve.arm for figure in chosen(name) for panel in figure.panels for curve in panel.curves)
    taken: set[Override] = set()
    arms = []
    for label in wanted:
        taken.update(fitting_overrides(label, changes))
        arms.append(Arm(label, scenario(label, (*specification, *changes))))
    for change in changes:
        if change not in taken:
            preset("paper-iid", [change])  # a field that does not exist is named as such
            raise ScenarioError(f"{change.field}: no run of {name} has this field to set")
    return Plan(PLAN_PREFIX + name, tuple(arms), tuple(seeds), study=STUDY.name)


def scenario(label: str, overrides: Iterable[AnyOverride] = ()) -> Scenario:
    """The scenario of one arm of the paper's figures; overrides that are not for this arm are passed over."""
    base, own = _recipes()[label]
    return preset(base, (*own, *fitting_overrides(label, overrides)))


def fitting_overrides(label: str, overrides: Iterable[AnyOverride]) -> list[Override]:
    """Those of the overrides that are for this arm."""
    return [override for override in parsed(overrides) if _fits(_unchanged(label), _recipes()[label][1], override)]


@cache
def _unchanged(label: str) -> Scenario:
    return preset(*_recipes()[label])


def _check_allowed(overrides: Iterable[Override]) -> None:
    for field in (override.field for override in overrides):
        for fixed in FIXED:
            if field == fixed or field.startswith(f"{fixed}."):
                raise ScenarioError(
                    f"{field}: cannot be set here, since it is what the panels of the paper's figures differ in; "
                    "use `feelstream compare` for other comparisons"
                )


def _fits(scenario: Scenario, own: Sequence[str], override: Override) -> bool:
    """Whether an override is for this arm: its policy and arrivals have the field, and it is not what makes the arm.

    V = ∞ is what figures 2 and 3 are about, eligibility what the figure with data is about, and σ what the comparison
    by width is about, so they stay.
    """
    section, field = override.section, override.last
    if override.field == Override.parse(WITH_DATA).field:
        return WITH_DATA not in own
    if override.field == WIDTH and any(each.startswith(f"{WIDTH}=") for each in own):
        return False
    if section == ("data", "arrivals") and field in type(preset("paper-iid").data.arrivals).model_fields:
        return field in type(scenario.data.arrivals).model_fields  # uniform arrivals have no σ
    if section == ("data", "partition"):
        return field in type(scenario.data.partition).model_fields  # only devices of few digits may differ in size
    if section != ("policy",):
        return True
    has_it = field in type(scenario.policy).model_fields
    return has_it and not (field == "V" and getattr(scenario.policy, "V", 0.0) == inf)


def figures_of(plan: Plan) -> tuple[PanelFigure, ...]:
    """The paper's figures that a plan was made for; none for any other plan."""
    name = plan.name.removeprefix(PLAN_PREFIX)
    if name == plan.name or name not in (*FIGURES, "all"):
        return ()
    return chosen(name)


def title(plan: Plan) -> str:
    shown = figures_of(plan)
    if len(shown) != 1:
        return "The paper’s figures"
    own = shown[0].title
    return f"The paper’s {own[0].lower()}{own[1:]}"


def command(plan: Plan) -> str:
    """The command that makes a stored plan of the figures again."""
    words = ["feelstream", "reproduce", plan.name.removeprefix(PLAN_PREFIX), "--seeds", str(len(plan.seeds))]
    if min(plan.seeds):
        words += ["--seed-start", str(min(plan.seeds))]
    for change in changes(plan):
        words += ["--set", change]
    return shlex.join(words)


def changes(plan: Plan) -> list[str]:
    """The settings of a stored plan that differ from the paper's presets, as `section.field=value`."""
    found: dict[str, None] = {}
    for arm in plan.arms:
        if arm.label in _recipes():
            before, after = flat(_unchanged(arm.label).as_dict()), flat(arm.scenario.as_dict())
            changed = (key for key in after if after[key] != before.get(key))
            found.update(dict.fromkeys(f"{key}={as_text(after[key])}" for key in changed))
    return list(found)
