"""The native engine against PyTorch in float64, and against itself."""

from __future__ import annotations

import numpy as np
import pytest
from float64 import TOLERANCE, data, data_set, nn, of_arrays, torch, torch_input, torch_module, torch_training
from hypothesis import given, settings
from hypothesis import strategies as st

from feelstream.errors import EngineError
from feelstream.learning.models import STACKS, WINDOWS, Conv, Dense, Layer, MaxPool, Model, ReLU, build
from feelstream.learning.native import ISA_VARIABLE, NativeLearner, chosen_instruction_set, instruction_sets


def learner_of(model: Model, tests: int = 50, threads: int = 1) -> NativeLearner:
    return NativeLearner(model, data_set(model, tests=tests), threads)


def assert_trains_like_torch(model: Model, batch: int, steps: int, lr: float = 0.02, seed: int = 0):
    learner = learner_of(model)
    images, labels = data(model, 80)
    theta = learner.init(seed)
    batches = np.random.default_rng(seed).integers(0, 80, (1, steps, batch))
    training = learner.train(theta, batches, lr)
    update, losses, _ = torch_training(model, images, labels, theta, batches[0], lr)
    scale = np.linalg.norm(update)
    assert scale > 0
    assert np.abs(training.updates[0] - update).max() <= TOLERANCE * scale
    np.testing.assert_allclose(training.losses[0], losses, rtol=TOLERANCE, atol=TOLERANCE)


@st.composite
def stacks(draw) -> Model:
    """Any stack of up to six layers that leaves something, ended by a layer of logits."""
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 13), st.integers(1, 13)))
    model = Model(shape, ())
    for _ in range(draw(st.integers(0, 6))):
        _, rows, columns = model.shapes()[-1] if model.layers else shape
        choices: list[st.SearchStrategy[Layer]] = [
            st.just(ReLU()),
            st.builds(Conv, st.integers(1, 14), st.integers(1, min(rows, columns, 7))),
            st.builds(
                Conv, st.integers(1, 6), st.tuples(st.integers(1, min(rows, 7)), st.integers(1, min(columns, 9)))
            ),
            st.builds(Conv, st.integers(1, 6), st.tuples(st.integers(1, 6), st.integers(1, 6)), st.just(True)),
            st.builds(Dense, st.integers(1, 40)),
        ]
        windows = [MaxPool(*window) for window in WINDOWS if window[0] <= rows and window[1] <= columns]
        if windows:
            choices.append(st.sampled_from(windows))
        model = Model(shape, (*model.layers, draw(st.one_of(choices))))
    return Model(shape, (*model.layers, Dense(draw(st.integers(2, 12)))))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(stacks(), st.integers(1, 40))
def test_any_stack_trains_like_torch(model: Model, batch: int):
    assert_trains_like_torch(model, batch, steps=20)


def filtered(shape: tuple[int, int, int], kernel: int | tuple[int, int], pool: tuple[Layer, ...]) -> Model:
    """Kernels for which there is minimal filtering, forward and back."""
    return Model(shape, (Conv(4, 1), Conv(19, kernel), *pool, Conv(shape[0], kernel, same=True), Dense(3)))


# No ReLU where nothing is pooled: float32 decides like float64 only as long as no input of it is nearly zero.
SQUARES = [(3, 5, 5), (5, 8, 9), (6, 9, 8), (17, 11, 13), (4, 12, 10), (9, 6, 18), (40, 7, 7)]
ROWS = [(3, 1, 9), (5, 2, 12), (16, 1, 23), (18, 3, 8)]
FIVES = [(4, 6, 6), (5, 7, 9), (6, 9, 8), (4, 11, 13), (7, 12, 10), (9, 6, 17), (3, 14, 15)]
EDGES = [
    *(filtered(shape, 3, pool) for shape in SQUARES for pool in ((), (MaxPool(), ReLU()))),
    *(filtered(shape, (1, n), pool) for shape in ROWS for n in (5, 7) for pool in ((), (MaxPool(1, 2), ReLU()))),
    *(Model(shape, (Conv(4, 1), Conv(7, 5), MaxPool(), ReLU(), Dense(3))) for shape in FIVES),
]


@pytest.mark.parametrize("model", EDGES, ids=lambda model: f"{model.input} {model.layers[1]} {len(model.layers)}")
def test_minimal_filtering_at_every_edge(model: Model):
    """With channels that leave vectors part empty, and rows and columns that leave tiles part empty or unused."""
    assert_trains_like_torch(model, batch=19, steps=4)
    assert_evaluates_like_torch(model, rel=1e-5)


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("batch", [1, 10, 16, 33])
def test_named_models_train_like_torch(name: str, batch: int):
    model = build(name, (1, 28, 28), 10)
    assert_trains_like_torch(model, batch, steps=2)
    if batch == 1:
        assert_evaluates_like_torch(model, rel=1e-5)


def assert_evaluates_like_torch(model: Model, rel: float):
    learner = learner_of(model, tests=101)
    images, labels = data(model, 101, 1)
    theta = learner.init(3)
    module = torch_module(model, theta)
    with torch.inference_mode():
        logits = module(torch_input(images))
        loss = nn.functional.cross_entropy(logits, torch.from_numpy(labels)).item()
    evaluation = learner.evaluate(theta)
    assert evaluation.loss == pytest.approx(loss, rel=rel)
    assert evaluation.accuracy == (logits.argmax(1).numpy() == labels).mean()


@pytest.mark.parametrize("first", [(), (Conv(4, 1),)])
def test_ties_in_a_pooling_window_go_where_torch_sends_them(first: tuple[Conv, ...]):
    """Uniform images make every window a tie; sharing the gradient would change the update.

    Four channels are enough for minimal filtering, which must leave equal outputs equal.
    """
    model = Model((1, 9, 9), (*first, Conv(4, 3), MaxPool(), MaxPool(), Dense(3)))
    images = np.repeat(np.arange(0, 240, 6, dtype=np.uint8), 81).reshape(40, 1, 9, 9)
    images[:, 0, ::3, ::2] += 9
    labels = np.arange(40) % 3
    learner = NativeLearner(model, of_arrays(images, labels, images, labels), 1)
    theta, batches = learner.init(0), np.arange(40).reshape(1, 2, 20)
    update, *_ = torch_training(model, images, labels, theta, batches[0], 0.1)
    error = learner.train(theta, batches, 0.1).updates[0] - update
    assert np.abs(error).max() <= TOLERANCE * np.linalg.norm(update)


def test_the_fastest_instruction_set_is_the_default_and_one_that_cannot_run_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(ISA_VARIABLE, raising=False)
    assert chosen_instruction_set() == instruction_sets()[-1]
    assert learner_of(SMALL).details == {"isa": instruction_sets()[-1]}
    monkeypatch.setenv(ISA_VARIABLE, "sse9")
    with pytest.raises(EngineError, match=r"FEELSTREAM_ISA is 'sse9'.*baseline"):
        learner_of(SMALL)


def test_strided_arrays_are_read_right():
    model = build("mlp", (1, 5, 6), 4)
    images, labels = data(model, 60)
    strided = NativeLearner(model, of_arrays(images[::2], labels[::2], images, labels))
    plain = NativeLearner(model, of_arrays(images[::2].copy(), labels[::2].copy(), images, labels))
    theta = np.repeat(plain.init(0), 2)[::2]
    batches = np.random.default_rng(0).integers(0, 30, (2, 6, 5))
    expected = plain.train(theta.copy(), batches[:, ::2].copy(), 0.1)
    assert np.array_equal(strided.train(theta, batches[:, ::2], 0.1).updates, expected.updates)


SMALL = build("softmax", (1, 4, 4), 3)


def test_the_kernel_refuses_to_work_on_no_thread_and_to_read_beyond_an_array() -> None:
    learner, one = learner_of(SMALL), np.zeros((1, 1, 1), np.int64)
    learner.threads = 0
    for use in (learner.evaluate, lambda theta: learner.train(theta, one, 0.1)):
        with pytest.raises(ValueError, match="at least one thread"):
            use(learner.init(0))
    learner.threads, learner.labels["train"][3] = 1, 3
    with pytest.raises(ValueError, match="a label is outside the model's classes"):
        learner.train(learner.init(0), one, 0.1)
