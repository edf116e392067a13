"""FedJAX: its federated averaging on a Haiku model, compiled by XLA.

As users run it: the default backend, which takes one client after the other. Tuned: the pmap backend on two host
devices, so that two clients are trained at a time. Images are stored with their channels last, which XLA likes
best.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import os

from workload import Diary, Images, asked

WORK = asked()
if WORK.tuned:  # before JAX is loaded
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import fedjax  # noqa: E402
import haiku as hk  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from fedjax.algorithms import fed_avg  # noqa: E402

SHAPE = (*WORK.kind.shape[1:], WORK.kind.shape[0])


def forward(batch) -> jax.Array:
    def pool(x: jax.Array) -> jax.Array:
        return hk.max_pool(x, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    if WORK.workload == "cifar":
        x = batch["x"]
        for channels in (32, 32, 64):
            x = jax.nn.relu(pool(hk.Conv2D(channels, 3, padding="SAME")(x)))
        return hk.Linear(10)(jax.nn.relu(hk.Linear(64)(hk.Flatten()(x))))
    x = jax.nn.relu(pool(hk.Conv2D(10, 5, padding="VALID")(batch["x"])))
    x = jax.nn.relu(pool(hk.Conv2D(20, 5, padding="VALID")(x)))
    x = jax.nn.relu(hk.Linear(50)(hk.Flatten()(x)))
    return hk.Linear(10)(x)


def model() -> fedjax.Model:
    return fedjax.create_model_from_haiku(
        hk.transform(forward),
        {"x": np.zeros((1, *SHAPE), np.float32), "y": np.zeros(1, np.int32)},
        train_loss=lambda batch, logits: fedjax.metrics.unreduced_cross_entropy_loss(batch["y"], logits),
        eval_metrics={"accuracy": fedjax.metrics.Accuracy()},
    )


def main() -> None:
    images, diary = Images(WORK), Diary()
    train = np.ascontiguousarray(images.train.transpose(0, 2, 3, 1))
    labels = images.train_labels.astype(np.int32)
    shares = {f"{k:03}": {"x": train[share], "y": labels[share]} for k, share in enumerate(images.shares)}
    test = fedjax.ClientDataset(
        {"x": np.ascontiguousarray(images.test.transpose(0, 2, 3, 1)), "y": images.test_labels.astype(np.int32)}
    )
    tests = list(test.padded_batch(batch_size=1000))
    net = model()
    if WORK.tuned:
        fedjax.set_for_each_client_backend("pmap")
    algorithm = fed_avg.federated_averaging(
        fedjax.model_grad(net), fedjax.optimizers.sgd(WORK.lr), fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=WORK.batch, num_steps=WORK.steps, num_epochs=None),
    )  # fmt: skip
    sampler = fedjax.client_samplers.UniformGetClientSampler(fedjax.InMemoryFederatedData(shares), WORK.size, WORK.seed)
    state = algorithm.init(net.init(jax.random.PRNGKey(WORK.seed)))
    for _ in range(WORK.played):
        state, _ = algorithm.apply(state, sampler.sample())
        diary.tested(float(fedjax.evaluate_model(net, state.params, tests)["accuracy"]))
    diary.finish("pmap backend on two host devices" if WORK.tuned else "default backend")


if __name__ == "__main__":
    main()
