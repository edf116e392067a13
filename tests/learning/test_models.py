"""Descriptions of models: shapes, counts, and sentences about stacks that do not fit."""

from __future__ import annotations

import re

import pytest

from feelstream.data.datasets import load
from feelstream.errors import ScenarioError
from feelstream.learning import describe
from feelstream.learning.models import Conv, Dense, MaxPool, Model, ReLU, build


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
