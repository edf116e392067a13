# %% [markdown]
# # Deploying on Flower
#
# In a real federation, devices are clients of [Flower](https://flower.ai), and the scheduler decides which of them train. Install it with
# `pip install '.[flower]'`. This page shows the server and the client, then rehearses the server without a network.
#
# ## The server
#
# `ScheduledFedAvg` replaces `FedAvg`. A scenario describes the devices: their number, budget, CPU and radio constants, and the length of
# a round. `Scheduled(inner=…)` does the same around any other Flower strategy.

# %%
from flwr.serverapp.strategy import FedAdam

import feelstream as fs
from feelstream.flower import Device, Scheduled, ScheduledFedAvg

scenario = fs.preset("tiny").with_(
    devices=4,
    rounds=6,
    size=1,
    cardinality="cap",
    energy_budget_j=0.02,
    eligible="with_data",
)
strategy = ScheduledFedAvg(scenario, policy="lyapunov", classes=10)
adaptive = Scheduled(inner=FedAdam(fraction_evaluate=0.0), scenario=scenario)

# %% [markdown]
# A ServerApp calls `strategy.start(grid, arrays, num_rounds=…)`, as with any strategy. With `out="runs/monday"` it writes an ordinary run
# directory, and a restarted server resumes where it stopped.
#
# ## The client
#
# Three lines report to the scheduler, and a handler answers its queries. You write `label_counts`: how many samples of each label the
# device holds now.

# %%
from flwr.clientapp import ClientApp

app = ClientApp()


def label_counts():
    return [12, 0, 7, 0, 0, 0, 0, 3, 0, 0]


@app.query("feelstream")
def report(message, context):
    return Device(context, message, label_counts()).answer()


@app.train()
def train(message, context):
    device = Device(context, message, label_counts())  # 1
    with device.training():  # 2: measures time, and energy where there is a meter
        arrays, metrics = message.content["arrays"], None  # your training, as it was
    return device.answer(arrays, metrics)  # 3


# %% [markdown]
# ## A rehearsal
#
# Behind the strategy is a `Scheduler`, which knows nothing about networks: it takes reports, schedules devices, and settles what a round
# has cost. Here are four devices with different labels and CPUs. Their data grows in every round, and device 3 is out of reach until
# round 4.

# %%
import numpy as np

from feelstream.flower import DeviceReport, Scheduler

scheduler = Scheduler(scenario, classes=10)
f_hz = [3e8, 6e8, 9e8, 4e8]
for _ in range(6):
    round = scheduler.begin()
    connected = np.array([True, True, True, round >= 4])
    counts = [
        np.bincount([k, k + 1], minlength=10).astype(np.int32) * 5 * round for k in range(4)
    ]
    held = [DeviceReport(counts[k], None, f_hz[k], beta=1.0) for k in range(4)]
    for k in np.flatnonzero(connected):
        scheduler.accept(k, held[k])
    chosen = scheduler.schedule(connected)
    scheduler.settle({int(k): held[k] for k in chosen})  # all of them reply in time
    queues_mj = np.round(scheduler.server.queue_j * 1e3, 1)
    print(
        f"round {round}: trains {chosen.tolist()}, queues after it in mJ {queues_mj.tolist()}"
    )

# %% [markdown]
# Device 3 has labels that no other device has. It is scheduled soon after it comes back.
#
# ## A whole federation on one machine
#
# One command starts a SuperLink and one SuperNode per device, runs a scenario through them, stores the run and stops everything that it
# started. You can then check the run like any other:
#
#     feelstream flower run tiny --nodes 3 --rounds 3 --out runs/tiny
#     feelstream verify runs/tiny
#
# It takes minutes because every message starts a process. [Deployment](../deployment.md) covers the rest: many machines, TLS, what is
# measured and what is modelled, late and lying devices, privacy.
