"""Which specifications are played: all that differ in the schedule, and a spread-out part of those that learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from feelstream.studies.hu2023.multiverse.settings import LEARNING, SCHEDULE, Factor, Specification, is_played

TRIES = 400  # random designs, of which the most spread-out is taken


def factorial(settings: Mapping[str, Factor]) -> list[Specification]:
    """Every combination of the settings that the schedule depends on."""
    names = [name for name in LEARNING if name in SCHEDULE]
    return [
        Specification.of(dict(zip(names, values, strict=True)))
        for values in product(*(settings[name].values for name in names))
    ]


def spread(settings: Mapping[str, Factor], n: int, seed: int = 0) -> list[Specification]:
    """n specifications with learning, in which every value of every setting comes up about equally often.

    Of TRIES random Latin designs (each setting's values in turn, shuffled) the one whose two nearest specifications
    differ most: a maximin Latin hypercube on discrete levels. Where T · steps would be too much, steps are lowered to
    the most that are played.

    Reference: M. D. Morris, T. J. Mitchell, "Exploratory designs for computational experiments", J. Statist. Plann.
    Inference 43, 1995.
    """
    rng = np.random.default_rng([seed, n])
    best: tuple[float, list[Specification]] | None = None
    for _ in range(TRIES if n > 1 else 1):
        columns = {name: _in_turn(settings[name].values, n, rng) for name in LEARNING}
        rows = [_repaired({name: columns[name][row] for name in LEARNING}, settings) for row in range(n)]
        distance = closest(coordinates(rows, settings))
        if best is None or distance > best[0]:
            best = distance, rows
    assert best is not None
    return list(dict.fromkeys(best[1]))


def _in_turn(values: Sequence[str], n: int, rng: np.random.Generator) -> list[str]:
    """n values, each as often as any other or once more, in random order."""
    whole = [value for _ in range(n // len(values)) for value in values]
    rest = rng.permutation(len(values))[: n - len(whole)]
    column = [*whole, *(values[index] for index in rest)]
    return [column[index] for index in rng.permutation(n)]


def _repaired(choices: dict[str, str], settings: Mapping[str, Factor]) -> Specification:
    fewer = sorted(settings["steps"].values, key=int)
    while not is_played(choices) and choices["steps"] != fewer[0]:
        choices = choices | {"steps": fewer[fewer.index(choices["steps"]) - 1]}
    return Specification.of(choices)


def coordinates(specifications: Sequence[Specification], settings: Mapping[str, Factor]) -> NDArray[np.float64]:
    """(n, settings): each value by its place among its setting's, from 0 to 1."""
    names = [name for name, _ in specifications[0].choices]
    places = {name: {value: i for i, value in enumerate(settings[name].values)} for name in names}
    steps = {name: max(1, len(settings[name].values) - 1) for name in names}
    return np.array([[places[name][value] / steps[name] for name, value in each.choices] for each in specifications])


def closest(points: NDArray[np.float64]) -> float:
    """The least distance between two of the points; infinite for one."""
    if len(points) < 2:
        return float("inf")
    distances = np.abs(points[:, None] - points).sum(axis=2)
    return float(distances[np.triu_indices(len(points), 1)].min())


def everything(settings: Mapping[str, Factor], schedules: Sequence[Specification]) -> list[Specification]:
    """Every combination of the given schedules with the settings of learning, as far as it is played."""
    names = [name for name in LEARNING if name not in SCHEDULE]
    learning = [dict(zip(names, values, strict=True)) for values in product(*(settings[n].values for n in names))]
    whole = [dict(schedule.choices) | each for schedule in schedules for each in learning]
    return [Specification.of(choices) for choices in whole if is_played(choices)]
