"""What the commands share: the two consoles, common options, JSON and hints."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

# Text is printed as it stands: names may have brackets or colons, and numbers in a sentence are not to be coloured.
out = Console(markup=False, emoji=False, highlight=False)
err = Console(stderr=True, markup=False, emoji=False, highlight=False)


def number_option(
    *names: str, help: str, low: float = 1, high: float = math.inf, whole: bool = True, metavar: str = "N"
) -> Any:
    """An option that takes a number from low to high, both included; what is allowed is said in plain words."""
    allowed = "a whole number" if whole else "a number"
    if low > -math.inf:
        allowed += f" of at least {low}" if high == math.inf else f" from {low} to {high}"

    def parsed(text: str) -> float:
        with suppress(ValueError):
            value = int(text) if whole else float(text)
            if low <= value <= high and value < math.inf:
                return value
        raise typer.BadParameter(f"must be {allowed}, not {text}")

    return typer.Option(*names, parser=parsed, metavar=metavar, help=help)


def complete_scenario(incomplete: str) -> list[str]:
    """Presets, for the shell's completion; the shell itself knows files."""
    from feelstream.scenario.files import presets

    return [name for name in presets() if name.startswith(incomplete)]


def complete_policy(incomplete: str) -> list[str]:
    from feelstream.policies import POLICIES

    return [name for name in [*POLICIES.names(), "all"] if name.startswith(incomplete)]


ScenarioArgument = Annotated[
    str,
    typer.Argument(metavar="SCENARIO", help="A preset's name or a TOML file.", autocompletion=complete_scenario),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="FIELD=VALUE", help="Override a field, for example V=0.1 or policy.V=0.1; repeatable."
    ),
]
RoundsOption = Annotated[
    int | None, number_option("--rounds", help="How many rounds, the same as --set system.rounds=N.")
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy", metavar="NAME", help="The policy, the same as --set policy=NAME.", autocompletion=complete_policy
    ),
]
SeedOption = Annotated[int, number_option("--seed", low=0, high=2**63 - 1, help="Seed of every random draw.")]
ThreadsOption = Annotated[int | None, number_option("--threads", help="CPU threads for learning; default: all cores.")]

WorkersOption = Annotated[int | None, number_option("--workers", help="Processes; default: one per core.")]
DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS", help="Run on a Dask cluster: tcp://host:port of its scheduler, or local."
    ),
]
SeedsOption = Annotated[int, number_option("--seeds", high=100_000, help="How many seeds.")]
SeedStartOption = Annotated[int, number_option("--seed-start", low=0, high=2**62, help="The first seed.")]


def policy_option(left_out: str) -> Any:
    """The option --policy; left_out: what is compared without it."""
    words = "Comma-separated names or file.py:Class, with fields as in 'lyapunov(V=0.1)', or all; repeatable"
    help = f"{words}; default: {left_out}."
    return typer.Option("--policy", metavar="POLICY", help=help, autocompletion=complete_policy)


def changes_of(
    overrides: list[str] | None, *, policy: str | None = None, rounds: int | None = None, devices: int | None = None
) -> list[str]:
    """What --policy, --set, --rounds and --nodes say together: first the policy, then its fields."""
    own = {"system.rounds": rounds, "system.devices": devices}
    said = [f"{field}={value}" for field, value in own.items() if value is not None]
    return [*([f"policy.name={policy}"] if policy is not None else []), *(overrides or ()), *said]


def typed(option: str, values: Iterable[Any] | None) -> list[str]:
    """An option as it is typed, once for each value."""
    return [word for value in values or () for word in (option, str(value))]


def plain_table() -> Table:
    return Table(show_header=False, box=None, padding=(0, 2, 0, 0))


def print_json(value: Any) -> None:
    """On standard output, for programs; infinity and NaN, which JSON lacks, are null."""
    print(json.dumps(_finite(value), indent=2, ensure_ascii=False, default=str))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def hint(sentence: str) -> None:
    """Something that may help, on standard error."""
    err.print(sentence, style="dim", soft_wrap=True)


def next_command(*words: str | Path) -> None:
    """What most users do next, as the last line on standard error."""
    hint(f"next: {shlex.join(map(str, words))}")
