"""All kinds of plug-ins that can be tried, and which of them something is."""

from __future__ import annotations

from inspect import signature
from typing import Any

from pydantic import ValidationError

from feelstream.data.streaming import ARRIVALS, BUFFERS, PARTITIONS
from feelstream.environment import AVAILABILITIES, CHANNELS, FAULTS, FREQUENCIES, HARVESTS, MOBILITIES
from feelstream.errors import ScenarioError
from feelstream.evaluation import EVALUATORS, Evaluator
from feelstream.learning.local import LOCAL_TRAININGS
from feelstream.learning.server import SERVER_UPDATES
from feelstream.model.costs import COST_RULES
from feelstream.model.energy import ENERGY_LAWS
from feelstream.model.importance import METRICS
from feelstream.plugins import Plugin, PluginRegistry, did_you_mean, import_object
from feelstream.policies import POLICIES
from feelstream.testing import laws
from feelstream.testing.player import Kind, Law, Result, check_kind

EVALUATOR_ARGUMENTS = 4  # predict, test, held, round
FLAGS = "it does what its flags promise to other code"
_ALL = (
    Kind("policy", POLICIES, "policy"),
    Kind("metric", METRICS, "policy.metric"),
    Kind("evaluator", EVALUATORS, "learning.evaluators"),
    Kind("partition", PARTITIONS, "data.partition"),
    Kind("arrivals", ARRIVALS, "data.arrivals"),
    Kind(
        "buffer",
        BUFFERS,
        "data.buffer",
        (Law("flags", "it holds what came and has not left, as its flags promise", laws.holds_what_came),),
    ),
    Kind(
        "energy law",
        ENERGY_LAWS,
        "cpu.energy",
        (
            Law("own", "what a device spends does not depend on who else is asked about", laws.asks_each_alone),
            Law("most", "most_j is exceeded at no frequency of its range", laws.knows_its_most),
            Law(
                "pieces",
                "its pieces, if it states them, cover all frequencies and say what energy_j says",
                laws.states_its_pieces,
            ),
        ),
    ),
    Kind("cost", COST_RULES, "costs.rule", (Law("flags", FLAGS, laws.charges_as_it_says),)),
    Kind("frequency", FREQUENCIES, "world.frequency"),
    Kind(
        "channel",
        CHANNELS,
        "world.channel",
        (Law("mean", "powers have mean 1: the mean gain is the device's β", laws.has_mean_one),),
    ),
    Kind("mobility", MOBILITIES, "world.mobility", (Law("flags", FLAGS, laws.keeps_its_gains),)),
    Kind("availability", AVAILABILITIES, "world.availability", (Law("flags", FLAGS, laws.plays),)),
    Kind(
        "harvest",
        HARVESTS,
        "world.harvest",
        (Law("flags", "its battery, if there is one, has a capacity, and a charge within it", laws.has_a_battery),),
    ),
    Kind("faults", FAULTS, "world.faults", (Law("flags", FLAGS, laws.plays),)),
    Kind(
        "local_training",
        LOCAL_TRAININGS,
        "learning.local",
        (Law("alone", "what a device does depends on no other device of the round", laws.trains_alone),),
    ),
    Kind(
        "server_update",
        SERVER_UPDATES,
        "learning.server",
        (Law("bits", "it says how many bits an update takes", laws.sends_bits),),
    ),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}


def check(plugin: Any, kind: str | None = None) -> list[Result]:
    """Try a plug-in, an object with its settings or a function, on awkward cases; one result per promise of its kind.

    >>> from feelstream.data.streaming.buffers import Keep
    >>> all(result.ok for result in check(Keep()))
    True
    """
    return check_kind(plugin, KINDS[kind] if kind else kind_of(type(plugin) if isinstance(plugin, Plugin) else plugin))


def kind_of(found: Any) -> Kind:
    """The kind of a class, or of a function: an evaluator has four arguments, local training more, a metric fewer."""
    if isinstance(found, Evaluator) or (callable(found) and not isinstance(found, type)):
        if _parameters(found)[:1] == ["predict"] and _arguments(found) < EVALUATOR_ARGUMENTS:
            raise ScenarioError(
                f"'{getattr(found, '__name__', found)}' is a probe, of (predict, samples); run the policy that needs it"
            )
        if isinstance(found, Evaluator) or _arguments(found) == EVALUATOR_ARGUMENTS:
            return KINDS["evaluator"]
        return KINDS["local_training" if _arguments(found) > EVALUATOR_ARGUMENTS else "metric"]
    for kind in KINDS.values():
        if kind.name != "metric" and kind.registry.is_one(found):
            return kind
    registries = [kind.registry for kind in KINDS.values()]
    bases = ", ".join(each.base.__name__ for each in registries if isinstance(each, PluginRegistry))
    raise ScenarioError(f"{found!r:.100} is no plug-in: it must be a class derived from one of {bases}, or a function")


def _arguments(function: Any) -> int:
    return len(_parameters(function))


def _parameters(function: Any) -> list[str]:
    try:
        return list(signature(function).parameters)
    except (TypeError, ValueError):  # a function whose signature is not known
        return []


def named(name: str, kind: str | None = None) -> tuple[Any, Kind]:
    """What `file.py:Name`, `package.module:Name` or a short name stands for, by its default settings; and its kind."""
    wanted = _kind_of_name(name) if kind is None else KINDS[kind]
    found = wanted.registry.lookup(name)
    if not isinstance(found, type):
        return found, wanted
    try:
        return found(), wanted
    except (ValidationError, TypeError) as problem:
        raise ScenarioError(f"'{name}' cannot be made: give each of its fields a default") from problem


def _kind_of_name(name: str) -> Kind:
    known = [kind for kind in KINDS.values() if name in kind.registry.names()]
    if len(known) > 1:
        raise ScenarioError(f"'{name}' is ambiguous: say which with --kind {' or --kind '.join(k.name for k in known)}")
    if known:
        return known[0]
    if ":" not in name:
        close = did_you_mean(name, [known for kind in KINDS.values() for known in kind.registry.names()])
        raise ScenarioError(f"'{name}' is not known; {close}give the name of a plug-in, or your own as file.py:Name")
    return kind_of(import_object(name))
