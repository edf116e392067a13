# %% [markdown]
# # Your own data and model
#
# You can stream any classification data. Put it in an `.npz` file. If you add owners and recording times, each device receives what its
# owner recorded, when it was recorded.
#
# ## A small recording
#
# Four people alternate between three activities, recorded by one sensor. A sample is a series of 64 values, stored with the shape
# (channels, 1, 64).

# %%
import numpy as np

import feelstream as fs

rng = np.random.default_rng(0)
label = np.arange(600) // 20 % 3
wave = np.sin(np.arange(64) * (label[:, None] + 1) / 5)
x = (wave + rng.normal(0, 0.5, wave.shape))[:, None, None, :]
train = np.arange(600) % 5 > 0  # every fifth sample is for testing
np.savez(
    "waves.npz",
    x_train=x[train], y_train=label[train], x_test=x[~train], y_test=label[~train],
    owner_train=(np.arange(600) % 4)[train],
    time_train=(np.arange(600) // 4 * 1.28)[train],  # seconds since the owner's recording began
)  # fmt: skip

# %% [markdown]
# ## A natural stream
#
# `natural` gives each device the samples of one owner. With `recorded`, they arrive at their recorded times; `speed="fit"` scales these
# so that the last one arrives at the end of the run.

# %%
scenario = fs.preset("tiny").with_(
    dataset="waves.npz",
    devices=4,
    rounds=15,
    size=1,
    partition="natural",
    arrivals="recorded",
    speed="fit",
    model="mlp",
)
run = fs.simulate(scenario)
run

# %% [markdown]
# This is what has arrived at the four devices, by round:

# %%
run.devices.pivot("device", index="round", values="stored").tail(4)

# %% [markdown]
# ## A model of your own
#
# A list of layers runs on the native engine. Its function may take `shape` (channels, rows, columns) and `classes`; the data set fills
# them in.

# %%
from pathlib import Path

Path("net.py").write_text("""
from feelstream.learning.models import Conv, Dense, MaxPool, ReLU


def waves(classes):
    return [Conv(8, (1, 9)), MaxPool(1, 2), ReLU(), Dense(classes)]
""")
run = fs.simulate(scenario.with_(model="net.py:waves"))
run.summary().select("accuracy", "loss")

# %% [markdown]
# The update's size and the cost of training do not follow the model automatically: `radio.update_bits` and `cpu.cycles` set how many
# bits are sent and how many CPU cycles a round takes. The paper counts 32 bits and 600 · 32 cycles per parameter:

# %%
parameters = len(run.model().theta)
fitting = scenario.with_(
    model="net.py:waves", update_bits=32.0 * parameters, cycles=600.0 * 32 * parameters
)
print(
    parameters,
    "parameters:",
    fs.simulate(fitting).summary()["energy_j"][0],
    "J per device and round",
)

# %% [markdown]
# ## PyTorch
#
# A class derived from `torch.nn.Module` runs on the PyTorch engine (`pip install '.[torch]'`):
#
#     class Net(nn.Sequential):
#         def __init__(self, shape, classes):
#             super().__init__(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], 32), nn.ReLU(), nn.Linear(32, classes))
#
# Name it in the same way, `model="net.py:Net"`. [Data sets, natural streams and models](../data.md) has the details,
# and a real recording: `feelstream run har` replays 30 people with a smartphone.
