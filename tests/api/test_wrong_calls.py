"""What people write before they have read the reference: each gets a sentence that says what to write."""

from __future__ import annotations

from typing import Any

import pytest

import feelstream as fs
from feelstream.errors import FeelstreamError


class NoPolicy:
    """A class that is derived from nothing."""


class NoSelect(fs.Policy):
    """A policy without its method."""


MANY: Any = {"seeds": 1, "rounds": 2, "engine": "none", "workers": 1}
WRONG: dict[str, tuple[Any, str]] = {
    "policies as a text": (lambda: fs.compare("lyapunov", "tiny"), "give the policies as a list"),
    "policies and scenario exchanged": (lambda: fs.compare("tiny", ["lyapunov"]), "give the policies as a list"),  # type: ignore[arg-type]
    "no policies": (lambda: fs.compare([], "tiny"), "give the policies as a list"),
    "one policy twice": (lambda: fs.compare(["random", "random"], "tiny"), "configuration 'random' 2 times"),
    "a number as a policy": (lambda: fs.compare([3], "tiny"), "a policy must be a name, a Policy or a Scenario"),  # type: ignore[list-item]
    "a class that is no policy": (lambda: fs.compare([NoPolicy], "tiny"), "write class NoPolicy.feelstream.Policy."),  # type: ignore[list-item]
    "a policy without select": (lambda: fs.compare([NoSelect], "tiny"), "NoSelect lacks select"),
    "a policy that is near": (lambda: fs.simulate("tiny", policy="randm"), "did you mean 'random'?"),
    "seed in place of seeds": (lambda: fs.compare(["random"], "tiny", seed=7), r"seeds=10 or seeds=\[7\]"),
    "no seeds": (lambda: fs.compare(["random"], "tiny", seeds=0), "seeds must be at least 1, not 0"),
    "seeds as a text": (lambda: fs.compare(["random"], "tiny", seeds="3"), "seeds must be a number or a list"),  # type: ignore[arg-type]
    "a seed twice": (lambda: fs.compare(["random"], "tiny", seeds=[1, 1]), "seed '1' 2 times"),
    "no workers": (lambda: fs.compare(["random"], "tiny", **MANY | {"workers": 0}), "workers must be 1 or more"),
    "a scenario of numbers": (lambda: fs.simulate(3), "the scenario must be a preset's name, a TOML file"),  # type: ignore[arg-type]
    "a preset that is near": (lambda: fs.simulate("tny"), "did you mean 'tiny'?"),
    "a field that is near": (lambda: fs.simulate("tiny", v=3), "did you mean 'V'?"),
    "a field of text": (lambda: fs.simulate("tiny", rounds="a"), "system.rounds: must be a whole number, not 'a'"),
    "a seed of text": (lambda: fs.simulate("tiny", seed="a"), "seed must be a whole number, not 'a'"),  # type: ignore[arg-type]
    "several seeds in one run": (lambda: fs.simulate("tiny", seed=[1, 2]), "several seeds are for compare"),  # type: ignore[arg-type]
    "one value to sweep": (lambda: fs.sweep("tiny", {"V": 3}), "each with at least one value"),  # type: ignore[dict-item]
    "a text to sweep": (lambda: fs.sweep("tiny", {"V": "12"}), "each with at least one value"),
    "nothing to sweep": (lambda: fs.sweep("tiny", {}), "give at least one field"),
    "a list to sweep": (lambda: fs.sweep("tiny", ["V"]), "give at least one field"),  # type: ignore[arg-type]
    "a run that is not there": (lambda: fs.read("nowhere"), "nowhere is not a run directory"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_call(wrong: str) -> None:
    call, said = WRONG[wrong]
    with pytest.raises(FeelstreamError, match=said):
        call()


@pytest.fixture(scope="module")
def found() -> fs.Comparison:
    return fs.compare(["lyapunov", "random"], "tiny", **MANY)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"style": "seaborn"}, "style: matplotlib has no style 'seaborn'; known: "),
        ({"figsize": 3}, "figsize: must be a width and a height in inches"),
        ({"ax": 3}, "ax: must be 2 Axes, one for each panel, not 3"),
        ({"against": "W"}, "no configurations differ in W alone"),
    ],
)
def test_a_wrong_plot(options: dict[str, Any], said: str, found: fs.Comparison) -> None:
    with pytest.raises(FeelstreamError, match=said):
        found.plot("energy_mean_cum_j", "queue_mean_j", **options)


def test_a_table_names_what_is_missing(found: fs.Comparison) -> None:
    assert repr(found).startswith("Comparison(2 configurations, 1 seed, in ")
    assert str(found).splitlines()[-1] == "fewer than 5 seeds: no verdict"
    with pytest.raises(FeelstreamError, match="there is no quantity 'energy'; did you mean 'energy_j'"):
        found.table(["energy"])


def test_a_printed_table_fits_eighty_columns(three_arms: Any) -> None:
    """Titles and verdicts may be wrapped, numbers not."""
    from feelstream.api.tables import plain

    _, _, summary = three_arms
    lines = plain(summary, ("late_accuracy", "energy_j", "energy_over_budget"), 5).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("cheap") and "0.80 ± 0.0" in line for line in lines)
