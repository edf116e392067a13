"""What users import says what its parts are: every argument of a function, and every field of a record."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import feelstream as fs

FUNCTIONS = [name for name in fs.__all__ if inspect.isfunction(getattr(fs, name))]
RECORDS = ["Comparison", "Decision", "EvaluationContext", "Observation", "Outcome", "RoundPlan", "Run", "Tuning"]
INNER = {"EvaluationContext": {"hold"}, "Tuning": {"base", "comparison"}}  # parts that other members show


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_of_a_function_is_explained_and_there_is_an_example(name: str) -> None:
    function = getattr(fs, name)
    text = inspect.getdoc(function) or ""
    assert ">>> " in text
    for argument in inspect.signature(function).parameters.values():
        stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(argument.kind, "")
        assert f"\n    {stars}{argument.name}: " in text, f"{name} does not say what {argument.name} is"


@pytest.mark.parametrize("name", RECORDS)
def test_every_field_of_a_record_is_explained(name: str) -> None:
    record = getattr(fs, name)
    text = inspect.getdoc(record) or ""
    for field in dataclasses.fields(record):
        if field.name not in INNER.get(name, ()):
            assert f"\n    {field.name}: " in text, f"{name} does not say what {field.name} is"


@pytest.mark.parametrize("method", ["init", "select", "update", "transmit"])
def test_the_methods_of_a_policy_say_what_they_are_for(method: str) -> None:
    assert inspect.getdoc(getattr(fs.Policy, method))
