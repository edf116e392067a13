"""Models: shapes, counts, stacks that do not fit; what one costs by the paper's numbers and by PyTorch's count, and
what auto becomes.
"""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import numpy as np
import pytest
from builders import devices_of, small
from float64 import of_arrays
from small_plans import in_process

import feelstream as fs
from feelstream.data.datasets import load
from feelstream.errors import ScenarioError
from feelstream.experiment import Arm, Plan
from feelstream.learning import describe, models
from feelstream.learning.models import Conv, Dense, MaxPool, Model, ReLU, build
from feelstream.scenario import Scenario, model_cost


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # Counted by hand: weights and biases, layer by layer.
        ("paper-cnn", (250 + 10) + (5000 + 20) + (320 * 50 + 50) + (500 + 10)),
        ("lenet5", (150 + 6) + (2400 + 16) + (256 * 120 + 120) + (120 * 84 + 84) + (840 + 10)),
        ("mlp", (784 * 64 + 64) + (640 + 10)),
        ("softmax", 7840 + 10),
        ("cifar-cnn", (9 * 32 + 32) + (9 * 32 * 32 + 32) + (9 * 32 * 64 + 64) + (64 * 9 * 64 + 64) + (640 + 10)),
        ("har-cnn", (7 * 16 + 16) + (5 * 16 * 32 + 32) + (5 * 32 * 32 + 32) + (32 * 28 * 3 * 32 + 32) + (320 + 10)),
    ],
)
def test_parameters_of_the_named_models(name: str, parameters: int):
    model = build(name, (1, 28, 28), 10)
    model.check(classes=10)
    assert model.parameters == parameters == len(model.init(0))


def test_shapes_follow_the_layers():
    model = Model((3, 11, 10), (Conv(4, 3), MaxPool(), ReLU(), Dense(5)))
    assert model.shapes() == [(4, 9, 8), (4, 4, 4), (4, 4, 4), (5, 1, 1)]
    assert model.classes == 5
    series = Model((6, 1, 128), (Conv(8, (1, 9)), MaxPool(1, 2), Conv(4, (1, 6), same=True), Dense(3)))
    assert series.shapes() == [(8, 1, 120), (8, 1, 60), (4, 1, 60), (3, 1, 1)]
    assert series.parameters == len(series.init(0)) == (6 * 8 * 9 + 8) + (8 * 4 * 6 + 4) + (240 * 3 + 3)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (Model((1, 4, 4), (Conv(2, 5), Dense(2))), "layer 1 (Conv(channels=2, kernel=5, same=False)) leaves nothing"),
        (Model((1, 4, 4), (Conv(2, 0), Dense(2))), "needs a kernel of at least 1"),
        (Model((1, 4, 4), (Conv(2, (3, 0)), Dense(2))), "needs a kernel of at least 1"),
        (Model((1, 1, 4), (Conv(2, (2, 1)), Dense(2))), "leaves nothing of its 1×4 input"),
        (Model((1, 4, 4), (MaxPool(1, 3), Dense(2))), "must have windows of 2×2, 1×2 or 2×1"),
        (Model((1, 4, 4), (Dense(0),)), "leaves nothing"),
        (Model((1, 1, 4), (MaxPool(), Dense(2))), "leaves nothing"),
        (Model((0, 4, 4), (Dense(2),)), "must hold positive numbers"),
        (Model((1, 4, 4), ()), "at least one layer with weights"),
        (Model((1, 4, 4), (ReLU(),)), "at least one layer with weights"),
        (Model((1, 4, 4), (Conv(2, 3),)), "one logit per class"),
        (Model((1, 4, 4), (Dense(1),)), "1 logits, and the data set has 2 classes"),
    ],
)
def test_models_that_do_not_fit(model: Model, sentence: str):
    with pytest.raises(ScenarioError, match=re.escape(sentence)):
        model.check(classes=2)


def test_unknown_model_names_the_known_ones():
    with pytest.raises(
        ScenarioError, match=r"learning\.model: 'vgg'.*paper-cnn, lenet5, cifar-cnn, har-cnn, mlp, softmax"
    ):
        describe("vgg", load("synthetic", samples=20))


AUTO = ("cpu.cycles=auto", "radio.update_bits=auto")
DATA = load("synthetic", samples=60, test_samples=30)
SHAPES = {"cifar-cnn": (3, 32, 32), "har-cnn": (6, 1, 128)}

OWN = """
import torch
from torch import nn

def Net():
    pool = lambda: [nn.MaxPool2d(2), nn.ReLU()]
    dense = [nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10)]
    return nn.Sequential(nn.Conv2d(1, 10, 5), *pool(), nn.Conv2d(10, 20, 5), *pool(), *dense)

class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(torch.ones(10))

    def forward(self, x):
        return x.flatten(1)[:, :10] * self.by
"""


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    model_cost._warn_once.cache_clear()
    caplog.set_level(logging.WARNING, "feelstream")
    return caplog


def test_the_papers_cnn_costs_what_the_paper_says_and_cycles_grow_with_steps_and_batch():
    found = model_cost.of(Scenario().learning, DATA)
    assert (found.update_bits, found.cycles) == (Scenario().radio.update_bits, Scenario().cpu.cycles)
    assert found.cycles == 600 * 32 * 21840
    assert model_cost.of(Scenario().with_(steps=5, batch=64).learning, DATA).cycles == 600 * 32 * 21840 / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", models.STACKS)
def test_multiply_adds_are_those_that_pytorch_counts(name: str):
    pytest.importorskip("torch")
    from feelstream.learning.torch_engine import TorchLearner

    model = models.build(name, SHAPES.get(name, (1, 28, 28)), 6)
    one, label = np.zeros((1, *model.input), np.uint8), np.zeros(1, np.uint8)
    assert TorchLearner(model, of_arrays(one, label, one, label)).multiply_adds == model.multiply_adds


def test_a_module_of_the_users_costs_what_the_same_stack_costs_or_needs_its_cycles(tmp_path: Path):
    pytest.importorskip("torch")
    (tmp_path / "nets.py").write_text(OWN)
    learning = Scenario().with_(model=f"{tmp_path / 'nets.py'}:Net").learning
    assert model_cost.of(learning, DATA) == model_cost.of(Scenario().learning, DATA)
    model = f"{tmp_path / 'nets.py'}:Scale"  # whose work cannot be counted
    with pytest.raises(ScenarioError, match=r"^cpu\.cycles: auto counts .*nets.py:Scale' has none; give the number"):
        fs.simulate(small(f"learning.model={model}", *AUTO))
    run = fs.simulate(small(f"learning.model={model}", "radio.update_bits=auto"))
    assert run.scenario.radio.update_bits == 320


@pytest.mark.parametrize("engine", ["native", "none"])
def test_a_run_holds_the_numbers_and_verifies(tmp_path: Path, engine: str):
    run = fs.simulate(small(f"learning.engine={engine}", *AUTO), out=tmp_path / "run")
    bits, cycles = 32 * 7850, model_cost.cycles(7840 * 2, 20, 32)  # no gradient of the input
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["scenario"]
    assert (stored["radio"]["update_bits"], stored["cpu"]["cycles"]) == (bits, cycles)
    computed = devices_of(run).filter("scheduled")
    assert computed["t_cmp_s"].to_list() == pytest.approx((cycles / computed["f_hz"]).to_list())
    assert fs.verify(tmp_path / "run").ok
    given = fs.simulate(small(f"learning.engine={engine}", f"cpu.cycles={cycles!r}", f"radio.update_bits={bits}"))
    assert given.rounds.equals(run.rounds)
    assert fs.simulate(small(f"learning.engine={engine}", *AUTO), out=tmp_path / "run").rounds.equals(run.rounds)


def test_auto_bits_are_those_that_devices_send_and_a_deployment_asks_for_the_number():
    with pytest.raises(ScenarioError, match=r"^radio\.update_bits: auto takes its number from learning\.model when"):
        small("radio.update_bits=auto").known_system(10)
    automatic, n = small("learning.engine=native", "radio.update_bits=auto", "system.rounds=1"), 7850
    quantised, largest = 8 * n + 32, 785 * (32 + 13)
    for fields, bits in (
        ({"server": "fedavg"}, 32 * n), ({"server": "quantise"}, quantised), ({"server": "top_k"}, largest),
        ({"learning.local.keep": "scaffold"}, 2 * 32 * n),
    ):  # fmt: skip
        assert fs.simulate(automatic.with_(**fields)).scenario.radio.update_bits == bits


def test_a_plan_shares_its_runs_with_one_that_gives_the_numbers_and_tells_the_problem_of_one_arm(tmp_path: Path):
    given = Arm("a", small(f"cpu.cycles={model_cost.cycles(7840 * 2, 20, 32)!r}", "radio.update_bits=251200"))
    slow = Arm("slow", small(*AUTO, "cpu.frequency_hz=[1.0, 2.0]"))
    auto = in_process(Plan("auto", (Arm("a", small(*AUTO)), slow), (0,)), tmp_path)
    assert auto.plan.arms[0] == given
    assert [failure.arm for failure in auto.failures] == ["slow"]
    assert "no update can ever fit a round" in auto.failures[0].reason
    alone = in_process(Plan("given", (given,), (0,)), tmp_path).directories
    assert set(alone.values()) <= set(auto.directories.values())


def test_cycles_that_leave_nobody_in_time_are_told_of_before_the_run(told: pytest.LogCaptureFixture):
    """Six devices with 20 s of work at the highest frequency, 2000 s at the lowest: in 21 s, one in 21 is ready."""
    cycles = model_cost.cycles(7840 * 2, 20, 32) or 0.0
    few = small("cpu.cycles=auto", f"cpu.frequency_hz=[{cycles / 2000!r}, {cycles / 20!r}]", "system.round_s=21.0")
    fs.simulate(few.with_(rounds=1))
    sentences = [record.getMessage() for record in told.records if "meet the deadline" in record.getMessage()]
    assert len(sentences) == 1
    assert f"auto found {cycles:.3g} cycles a round for the model, and of 6 devices only 0.29 on" in sentences[0]
    assert model_cost.nobody_on_time(small("cpu.cycles=1e8")) is None


def test_a_model_with_the_papers_numbers_is_told_of_once(told: pytest.LogCaptureFixture, tmp_path: Path):
    for _ in range(2):
        fs.simulate("tiny", model="mlp", rounds=1)
    fs.compare(["random"], "tiny", seeds=1, model="mlp", rounds=1, update_bits="auto", out=tmp_path, workers=1)
    assert [text.partition("at 32 each, but ")[2] for text in told.messages] == [
        "radio.update_bits = 698,880 and cpu.cycles = 419,328,000 belong to another model; set them to auto to follow "
        "the model",
        "cpu.cycles = 419,328,000 belongs to another model; set it to auto to follow the model",
    ]
    assert told.messages[0].startswith("learning.model = mlp has 50,890 parameters, 1,628,480 bits at 32 each, but")


def test_no_preset_contradicts_its_model():
    for name in fs.presets():
        scenario = fs.preset(name)
        model = scenario.learning.model
        parameters = models.build(model, SHAPES.get(model, (1, 28, 28)), 6 if model == "har-cnn" else 10).parameters
        assert model_cost.contradiction(scenario, parameters) is None, name


@pytest.mark.parametrize(
    ("bits", "cycles", "complains"),
    [
        (1628480.0, 1e9, False),
        (407120.0, 1e9, False),  # 8 bits a parameter
        (1628481.0, 1e9, True),
        (698880.0, 1e9, True),
        (1628480.0, 419328000.0, True),
    ],
)
def test_what_contradicts(bits: float, cycles: float, complains: bool):
    scenario = small("learning.model=mlp").with_(update_bits=bits, **{"cpu.cycles": cycles})
    assert (model_cost.contradiction(scenario, 50_890) is not None) == complains
