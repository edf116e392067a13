"""All that a deployment may be told beside its scenario, in four objects:

    Scheduled(inner, scenario, waiting=Waiting(first=8, late="use"), trust=Trust(max_examples=500))

A single setting may also be given by its own name, which is the same: Scheduled(inner, scenario, first=8, late="use").
run.json stores all of them.

What an app brings with it (`scenario`, its `devices.table`, a file of `names`) is found in the app's directory, the one
with its pyproject.toml, wherever the SuperLink was started. What it leaves behind (`out`) is put there too, unless
Flower has unpacked the app: that copy has a name with a hash of the code, so nobody would find it, and a change of the
code would start the run again. The runs of such an app are in `runs/PUBLISHER.APP` of Flower's home.
"""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, SkipValidation, ValidationError

from feelstream.columns import MEASURED
from feelstream.errors import FeelstreamError
from feelstream.plugins import Count, NonNegative, Positive, Settings, near_or_all
from feelstream.policies import Policy
from feelstream.scenario import Scenario
from feelstream.scenario import files as scenario_files
from feelstream.scenario.fields import first_problem
from feelstream.scenario.overrides import Override
from feelstream.scenario.sections import Share

Names = Sequence[str] | Mapping[str, int | Mapping[str, float]] | Path | str | None
ScenarioLike = Scenario | str | Path | Mapping[str, Any]
Source = Literal["measured", "model"]
WholeNumber = Annotated[int, Field(strict=True, ge=0)]


class Devices(Settings):
    """Who the devices are, and what they hold.

    Attributes:
        classes: Length of the label counts that devices report.
        names: The devices' names, a pattern for them, a table or a file (directory.py); by default "0", "1", …, which
            are Flower's partition-ids.
        bind_names: Whether the node that uses a name first keeps it for the run. True is for nodes that authenticate,
            which have the same id when they are started again; otherwise a node comes back as another one and must get
            its name again. None is False, with a warning, unless every name has a node id in a table, which binds it.
        passes: Where data is static, count all of it as fresh again once it was all used (a pass over it); otherwise
            every device has importance 0 from then on.
        max_report_age: Rounds for which a report is good enough; older ones are asked for. 0: ask everyone each round.
        max_priority: The most that a node may state as its own priority; by default it can only lower it.
    """

    classes: Count = 10
    names: Annotated[Any, SkipValidation] = None  # of the type Names
    bind_names: bool | None = None
    passes: bool = True
    max_report_age: WholeNumber = 5
    max_priority: Positive = 1.0


class Waiting(Settings):
    """How long a round waits, and for whom.

    Attributes:
        deadline_s: Wall-clock time for a training reply; system.round_s unless clock is "model".
        query_timeout_s: Wall-clock time for a report.
        enough_reports: Once this share of the asked have answered, the others get as long again.
        first: A round ends with the first so many updates of the scheduled; the others are charged, not waited for.
        adaptive_timeout: Wait as long as the scheduled devices have taken before, and some more, at most deadline_s.
        late: "use": updates that come up to three rounds late are averaged with the next ones, at 1/(1 + rounds) of
            their weight, where the inner strategy is a FedAvg or has accepts_late = True; "waste": they are not.
        min_available_nodes: Begin when so many nodes are connected,
        wait_s: or after so many seconds; the very first reports may take as long, since clients may have to start.
        give_up_after: Rounds in a row without any training after which the run ends with an error, once every device
            that can be scheduled has failed; a run that has trained nobody by its last round is one too. None: never.
    """

    deadline_s: Positive | None = None
    query_timeout_s: Positive = 30.0
    enough_reports: Share = 0.9
    first: Count | None = None
    adaptive_timeout: bool = False
    late: Literal["waste", "use"] = "waste"
    min_available_nodes: Count = 1
    wait_s: NonNegative = 120.0
    give_up_after: Count | None = 5


class Trust(Settings):
    """How far devices are believed.

    Attributes:
        max_examples: The most samples any device may claim for its weight; None: what it stores; "auto": ten times what
            it would store if it received as much as the median device.
        check_updates: Refuse updates that do not look like the model, or are not finite. None: do, except for
            FedXgbBagging and FedXgbCyclic. Turn it off for strategies whose model grows or whose updates are parts.
    """

    max_examples: NonNegative | Literal["auto"] | None = "auto"
    check_updates: bool | None = None


class Measuring(Settings):
    """What counts of what devices measure.

    Attributes:
        clock: "measured": the times that devices measure count against system.round_s; "model": the scenario's.
        energy: "measured": the energy that devices measure is charged; "model": the scenario's.
        plans: "measured": time and energy of training are planned as devices have measured them so far, by an estimate
            that begins with the scenario's model; "model": by that alone.
    """

    clock: Source = "measured"
    energy: Source = "measured"
    plans: Source = "measured"

    @property
    def fields(self) -> tuple[str, ...]:
        """Which of a device's own figures count."""
        return tuple(name for name in MEASURED if {"t": self.clock, "e": self.energy}[name[0]] == "measured")


class Options(Settings):
    """The four of one deployment, and the seed of its policy."""

    seed: int = 0
    devices: Devices = Devices()
    waiting: Waiting = Waiting()
    trust: Trust = Trust()
    measuring: Measuring = Measuring()

    @classmethod
    def of(cls, seed: int, groups: Mapping[str, Settings | None], single: Mapping[str, Any]) -> Self:
        """From the objects that were given, and settings by their own names, which count above them."""
        table: dict[str, Any] = {"seed": seed}
        for name, given in groups.items():
            table[name] = {} if given is None else {field: getattr(given, field) for field in given.model_fields_set}
        for name, value in single.items():
            if name not in GROUP_OF:
                raise FeelstreamError(f"there is no setting '{name}'; {near_or_all(name, list(GROUP_OF))}")
            table[GROUP_OF[name]][name] = value
        try:
            return cls.model_validate(table)
        except ValidationError as problem:
            raise FeelstreamError(first_problem(problem, model=cls)) from problem


GROUP_OF = {
    name: group
    for group, kind in {"devices": Devices, "waiting": Waiting, "trust": Trust, "measuring": Measuring}.items()
    for name in kind.model_fields
}


# An app's scenario and files


def scenario_of(given: ScenarioLike, policy: Policy | str | None) -> Scenario:
    """The scenario as it is meant in a deployment; one that is given as an object says all of it."""
    if isinstance(given, Scenario):
        scenario, said = given, set[str](type(given.policy).model_fields)
    else:
        scenario = (
            scenario_files.from_dict(given, _own_table(given))
            if isinstance(given, Mapping)
            else scenario_files.load(found := _own_scenario(given), _own_table(found))
        )
        said = set(scenario.policy.model_fields_set)
        if "eligible" not in scenario.data.model_fields_set:
            # A server that knows the counts asks nobody who holds nothing; the paper's reading must be asked for.
            scenario = scenario_files.from_dict(scenario.as_dict(), ["data.eligible=with_data"])
    if isinstance(policy, Policy):
        return Scenario.of({**scenario.tables(), "policy": policy})
    if policy is not None:
        scenario = scenario_files.from_dict(scenario.as_dict(), [f"policy.name={policy}"])
    chosen = scenario.policy
    # A fixed V or price is per joule, and turns take millijoules here and kilojoules there: nobody knows it before.
    auto = (name for name, field in type(chosen).model_fields.items() if Literal["auto"] in get_args(field.annotation))
    unsaid = dict.fromkeys((name for name in auto if name not in said), "auto")
    return Scenario.of({**scenario.tables(), "policy": chosen.model_copy(update=unsaid)}) if unsaid else scenario


def with_rounds(scenario: Scenario, rounds: int | None, evaluates: bool) -> Scenario:
    """The scenario as it is really run: so many rounds, and learning only as far as the server can see it."""
    tables = scenario.as_dict()
    tables["system"]["rounds"] = rounds or scenario.system.rounds
    if not evaluates:
        tables["learning"]["engine"] = "none"
    elif scenario.learning.engine == "none":
        tables["learning"]["engine"] = "auto"
    return scenario_files.from_dict(tables)


def _own_scenario(name: str | Path) -> str | Path:
    """A scenario's file as the app means it; the name of a preset stays as it is."""
    found = from_app(name) if Path(name).suffix else Path(name)
    return found if found.is_file() else name


def _own_table(given: Mapping[str, Any] | str | Path) -> list[Override]:
    """What lets a relative `devices.table` of a scenario be the file in the app's directory, where there is one."""
    tables: Any = given
    if not isinstance(given, Mapping):
        try:
            tables = tomllib.loads(Path(given).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):  # a preset; or what is wrong is said where it is read
            return []
    devices = tables.get("devices")
    table = devices.get("table") if isinstance(devices, Mapping) else None
    if not isinstance(table, str) or not table or not (found := from_app(table)).is_file():
        return []
    return [Override("devices.table", str(found))]


def _app_directory() -> Path | None:
    """The directory, with a pyproject.toml, of the app whose code is calling; None outside of any."""
    for frame in inspect.stack(0)[1:]:
        file = Path(frame.filename)
        if not file.is_file() or Path(__file__).parent in file.parents:
            continue
        for directory in file.resolve().parents:
            if (directory / "pyproject.toml").is_file():
                return directory
        return None
    return None


def from_app(path: str | Path) -> Path:
    """A file of the app's as the app means it."""
    given = Path(path).expanduser()
    directory = None if given.is_absolute() else _app_directory()
    return given if directory is None else directory / given


def run_directory(out: str | Path) -> Path:
    """Where the app's run is kept; absolute, so that what is printed of it can be found."""
    given = Path(out).expanduser()
    directory = None if given.is_absolute() else _app_directory()
    if directory is None:
        return given.absolute()
    home = Path(os.environ.get("FLWR_HOME") or "~/.flwr").expanduser().resolve()
    if directory.parent != home / "apps":
        return directory / given
    about = tomllib.loads((directory / "pyproject.toml").read_text(encoding="utf-8"))
    name = f"{about['tool']['flwr']['app']['publisher']}.{about['project']['name']}"  # Flower has checked them
    return home / "runs" / name / given
