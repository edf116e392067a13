"""A user's own training: a function for the torch engine, or a class for any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders import small
from stopped import goes_on_bit_for_bit

import feelstream as fs
from feelstream.errors import EngineError, FeelstreamError
from feelstream.experiment.replaying import replay
from feelstream.testing.kinds import named
from feelstream.testing.player import check_kind
from feelstream.verification import verify

pytest.importorskip("torch")

OWN = """
import numpy as np
import torch
from torch.nn.functional import cross_entropy

def plain(module, sampler, round, state, generator, lr):
    weights = list(module.parameters())
    for inputs, labels in sampler:
        losses = cross_entropy(module(inputs), labels, reduction="none")
        sampler.report(losses)
        gradients = torch.autograd.grad(losses.mean(), weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients):
                weight -= lr * gradient

def shaky(module, sampler, round, state, generator):
    noise = float(torch.rand(1, generator=generator)) + float(torch.rand(1))
    with torch.no_grad():
        for weight in module.parameters():
            weight += noise * 1e-3
    return {"rounds": state.get("rounds", np.zeros(0)).tolist() and state["rounds"] or np.array([round])}

def forgetful(module, sampler, round, state, generator):
    return [1]

def broken(module, sampler, round, state, generator):
    raise RuntimeError("no such luck")

def short(module, sampler):
    pass
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def learning(*more: str) -> fs.Scenario:
    return small("learning.engine=torch", "learning.local.steps=3", "learning.local.batch=8", *more)


def test_a_function_that_does_what_sgd_does_gives_its_model(own: Path) -> None:
    ours, theirs = fs.simulate(learning()), fs.simulate(learning(f"learning.local.kind={own}:plain"))
    np.testing.assert_allclose(theirs.model().theta, ours.model().theta, rtol=1e-5, atol=1e-7)
    assert theirs.rounds["scheduled"].equals(ours.rounds["scheduled"])


def test_auto_takes_the_torch_engine_and_native_is_refused(own: Path) -> None:
    kind = f"learning.local.kind={own}:plain"
    assert fs.simulate(small("learning.engine=auto", kind, "system.rounds=1")).manifest.engine["name"] == "torch"
    with pytest.raises(EngineError, match=r"learning\.engine: '.*own\.py:plain' of learning\.local trains nn\.Modules"):
        fs.simulate(small("learning.engine=native", kind))


def test_its_state_and_random_numbers_survive_a_stop_and_a_replay(own: Path, tmp_path: Path) -> None:
    whole = goes_on_bit_for_bit(tmp_path, learning(f"learning.local.kind={own}:shaky"), at=4)
    found = verify(whole)
    assert found.ok
    assert "what the user's own local training does" in found.not_checked
    assert replay(whole).ok


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("forgetful", r"'.*own\.py:forgetful' must return a dictionary of arrays, or nothing, for device \d"),
        ("broken", r"'.*own\.py:broken' failed for device \d in round \d: .*no such luck .*own\.py, line 27"),
        ("short", r"learning\.local\.kind: '.*short' must take five arguments"),
    ],
)
def test_what_a_function_does_wrong_becomes_a_sentence(name: str, sentence: str, own: Path) -> None:
    with pytest.raises(FeelstreamError, match=sentence):
        fs.simulate(learning(f"learning.local.kind={own}:{name}"))


@pytest.mark.parametrize("name", ["plain", "shaky"])
def test_functions_keep_the_contract(name: str, own: Path) -> None:
    results = check_kind(*named(f"{own}:{name}", "local_training"))
    assert [result.problem for result in results if not result.ok] == []
